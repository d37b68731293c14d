//! Sums of bytes on neighbouring tiles, side by side: each tile has a lane.
//!
//! Work that is alike for all lanes takes little more time than work for one. Arrays here are by
//! lane; lanes without a tile hold 0.

use std::ops::{Deref, DerefMut};

/// Number of tiles that are summed side by side. Few in tests, so that small models fill several.
pub(super) const LANES: usize = if cfg!(test) { 2 } else { 8 };

/// A sum of bytes in one lane. Changes wrap around: whatever their order, a sum of at most
/// [`Bytes::HIGHEST`] is right in the end.
pub(super) trait Bytes: Copy + Default + Ord + Send {
    /// The highest sum of bytes.
    const HIGHEST: u64;

    /// Returns `bytes`, or the highest sum if that is less.
    fn at_most(bytes: u64) -> Self;

    /// Returns `bytes` as a change of a sum.
    fn change(bytes: u32) -> Self;

    fn plus(self, other: Self) -> Self;

    fn minus(self, other: Self) -> Self;

    /// The sum as a number of bytes.
    fn sum(self) -> u64;
}

macro_rules! signed_bytes {
    ($signed:ty, $unsigned:ty) => {
        impl Bytes for $signed {
            const HIGHEST: u64 = <$signed>::MAX as u64;

            fn at_most(bytes: u64) -> Self {
                bytes.min(Self::HIGHEST) as Self
            }

            fn change(bytes: u32) -> Self {
                bytes as Self
            }

            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }

            fn sum(self) -> u64 {
                self as $unsigned as u64
            }
        }
    };
}
// Processors compare signed numbers in all lanes at once, but not unsigned ones.
signed_bytes!(i32, u32);
signed_bytes!(i64, u64);

/// An array by lane with a default of 0 in each lane, for any number of lanes.
#[derive(Debug, Clone, Copy)]
pub(super) struct ByLane<T, const N: usize>(pub(super) [T; N]);

impl<T: Default, const N: usize> Default for ByLane<T, N> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| T::default()))
    }
}

impl<T, const N: usize> Deref for ByLane<T, N> {
    type Target = [T; N];

    fn deref(&self) -> &[T; N] {
        &self.0
    }
}

impl<T, const N: usize> DerefMut for ByLane<T, N> {
    fn deref_mut(&mut self) -> &mut [T; N] {
        &mut self.0
    }
}

/// Adds `bytes` to `sums`.
#[inline]
pub(super) fn add<B: Bytes, const N: usize>(sums: &mut [B; N], bytes: &[B; N]) {
    for (sum, &bytes) in sums.iter_mut().zip(bytes) {
        *sum = sum.plus(bytes);
    }
}

/// Takes `bytes` from `sums`.
#[inline]
pub(super) fn subtract<B: Bytes, const N: usize>(sums: &mut [B; N], bytes: &[B; N]) {
    for (sum, &bytes) in sums.iter_mut().zip(bytes) {
        *sum = sum.minus(bytes);
    }
}

/// Raises each lane of `highest` to `bytes` where that is more.
#[inline]
pub(super) fn raise<T: Copy + Ord, const N: usize>(highest: &mut [T; N], bytes: &[T; N]) {
    for (highest, &bytes) in highest.iter_mut().zip(bytes) {
        *highest = bytes.max(*highest);
    }
}

/// Adds bytes in 64 bits, which no sum of real bytes exceeds.
#[inline]
pub(super) fn add_up<const N: usize>(sums: &mut [u64; N], bytes: &[u64; N]) {
    for (sum, bytes) in sums.iter_mut().zip(bytes) {
        *sum += bytes;
    }
}

/// The sum of `a` and `b` by lane, as [`add_up`] adds.
#[inline]
pub(super) fn plus<const N: usize>(a: &[u64; N], b: &[u64; N]) -> [u64; N] {
    std::array::from_fn(|lane| a[lane] + b[lane])
}

/// The sum of all, by lane.
pub(super) fn sum<const N: usize>(all: impl Iterator<Item = [u64; N]>) -> [u64; N] {
    all.fold([0; N], |mut sums, bytes| {
        add_up(&mut sums, &bytes);
        sums
    })
}

/// The highest number of any lane.
pub(super) fn highest<const N: usize>(numbers: &[u64; N]) -> u64 {
    numbers.iter().copied().max().unwrap_or(0)
}
