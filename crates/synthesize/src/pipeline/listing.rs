//! The tiles that a profile lists: all IPUs of a replica, one replica after the
//! other.

/// How many of each.
#[derive(Debug, Clone, Copy)]
pub(super) struct Listing {
    /// Tiles of an IPU.
    pub tiles: u32,
    /// IPUs of a replica.
    pub ipus: u32,
    /// Replicas whose tiles are listed.
    pub replicas: u32,
}

impl Listing {
    /// IPUs of all of them.
    pub fn all_ipus(&self) -> u32 {
        self.ipus * self.replicas
    }

    /// By tile: what an IPU has, on its tiles in each replica.
    pub fn by_tile(&self, ipu: u32, numbers: &[u64]) -> Vec<u64> {
        let tiles = self.tiles as usize;
        let mut all = vec![0; tiles * self.all_ipus() as usize];
        for replica in 0..self.replicas {
            let first = tiles * (replica * self.ipus + ipu) as usize;
            all[first..first + tiles].copy_from_slice(numbers);
        }
        all
    }

    /// By IPU: the same.
    pub fn by_ipu(&self, ipu: u32, number: u64) -> Vec<u64> {
        let all = 0..self.all_ipus();
        all.map(|other| if other % self.ipus == ipu { number } else { 0 })
            .collect()
    }
}
