//! Arithmetic with the bytes on neighbouring tiles side by side. Each tile has a *lane*, an index
//! of an array. An operation on all lanes takes little more time than on one. Lanes without a tile
//! hold 0.

use std::ops::{Deref, DerefMut};

/// The number of neighbouring tiles whose bytes are summed side by side, as entries (*lanes*) of an
/// array. The number is small in tests, so that small models have several groups of tiles.
pub const LANES: usize = if cfg!(test) { 2 } else { 8 };

/// A number type for bytes on one tile. Arrays of it, with one entry (*lane*) for each of several
/// tiles, are added fast. Sums wrap around, so bytes may be added and subtracted in any order: the
/// final sum is right if it is at most [`Bytes::HIGHEST`].
pub trait Bytes: Copy + Default + Ord + Send {
    /// The highest number of bytes that a sum in this number type can hold. Tiles with more bytes
    /// need a wider type.
    const HIGHEST: u64;

    fn at_most(bytes: u64) -> Self;

    fn plus(self, other: Self) -> Self;

    fn minus(self, other: Self) -> Self;

    /// Converts a sum of this number type, which must not be negative, to `u64`.
    fn sum(self) -> u64;
}

macro_rules! bytes {
    ($sum:ty) => {
        impl Bytes for $sum {
            const HIGHEST: u64 = <$sum>::MAX as u64;

            fn at_most(bytes: u64) -> Self {
                bytes.min(Self::HIGHEST) as Self
            }

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }

            fn sum(self) -> u64 {
                self as u64
            }
        }
    };
}
// Sums of bytes in 32 bits have a signed type, since processors can compare signed numbers in all
// lanes (tiles) at once, but not unsigned numbers.
bytes!(i32);
// Sums of the bytes on a tile of a real IPU never exceed 64 bits.
bytes!(u64);

/// An array with one entry for each lane (tile). Unlike an array of the standard library, it has a
/// default for any length `N`.
#[derive(Clone, Copy)]
pub struct ByLane<T, const N: usize>(pub [T; N]);

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

/// Applies the function `of` to the two numbers of each lane (tile) in two arrays. The loop is over
/// indices, since iterators would be equally fast in optimised code but three times as slow in test
/// builds.
#[inline(always)]
fn change_lanes<T: Copy, const N: usize>(to: &mut [T; N], by: &[T; N], of: impl Fn(T, T) -> T) {
    let mut lane = 0;
    while lane < N {
        to[lane] = of(to[lane], by[lane]);
        lane += 1;
    }
}

#[inline]
pub fn add<B: Bytes, const N: usize>(sums: &mut [B; N], bytes: &[B; N]) {
    change_lanes(sums, bytes, B::plus);
}

#[inline]
pub fn add_each<const N: usize, const KINDS: usize>(
    sums: &mut [ByLane<u64, N>; KINDS],
    bytes: &[ByLane<u64, N>; KINDS],
) {
    for (sums, bytes) in sums.iter_mut().zip(bytes) {
        add(sums, bytes);
    }
}

#[inline]
pub fn subtract<B: Bytes, const N: usize>(sums: &mut [B; N], bytes: &[B; N]) {
    change_lanes(sums, bytes, B::minus);
}

#[inline]
pub fn raise<T: Copy + Ord, const N: usize>(highest: &mut [T; N], bytes: &[T; N]) {
    change_lanes(highest, bytes, |a, b| if a > b { a } else { b });
}

pub fn lower<const N: usize>(lowest: &mut [u64; N], bytes: &[u64; N]) {
    change_lanes(lowest, bytes, u64::min);
}

#[inline]
pub fn is_above<T: Copy + Ord, const N: usize>(bytes: &[T; N], known: &[T; N]) -> bool {
    let mut is_above = false;
    let mut lane = 0;
    while lane < N {
        is_above |= bytes[lane] > known[lane];
        lane += 1;
    }
    is_above
}

#[inline]
pub fn plus<const N: usize>(a: &[u64; N], b: &[u64; N]) -> [u64; N] {
    let mut sums = *a;
    add(&mut sums, b);
    sums
}

pub fn highest<const N: usize>(numbers: &[u64; N]) -> u64 {
    numbers.iter().copied().max().unwrap_or(0)
}
