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

macro_rules! bytes {
    ($sum:ty, $unsigned:ty, $highest:expr) => {
        impl Bytes for $sum {
            const HIGHEST: u64 = $highest as u64;

            fn at_most(bytes: u64) -> Self {
                bytes.min(Self::HIGHEST) as Self
            }

            fn change(bytes: u32) -> Self {
                bytes as Self
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
                self as $unsigned as u64
            }
        }
    };
}
// Processors compare signed numbers in all lanes at once, but not unsigned ones.
bytes!(i32, u32, i32::MAX);
// No sum of real bytes exceeds 64 bits.
bytes!(u64, u64, u64::MAX);

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

/// Sets each lane of `to` to what `of` makes of it and of the same lane of `by`. A loop over
/// numbers: it is as fast as one over iterators where code is optimised, and three times as fast in
/// the builds that tests run.
#[inline(always)]
fn change_lanes<T: Copy, const N: usize>(to: &mut [T; N], by: &[T; N], of: impl Fn(T, T) -> T) {
    let mut lane = 0;
    while lane < N {
        to[lane] = of(to[lane], by[lane]);
        lane += 1;
    }
}

/// Adds `bytes` to `sums`.
#[inline]
pub(super) fn add<B: Bytes, const N: usize>(sums: &mut [B; N], bytes: &[B; N]) {
    change_lanes(sums, bytes, B::plus);
}

/// Takes `bytes` from `sums`.
#[inline]
pub(super) fn subtract<B: Bytes, const N: usize>(sums: &mut [B; N], bytes: &[B; N]) {
    change_lanes(sums, bytes, B::minus);
}

/// Raises each lane of `highest` to `bytes` where that is more.
#[inline]
pub(super) fn raise<T: Copy + Ord, const N: usize>(highest: &mut [T; N], bytes: &[T; N]) {
    change_lanes(highest, bytes, |a, b| if a > b { a } else { b });
}

/// Is `bytes` more than `known` in any lane?
#[inline]
pub(super) fn is_above<T: Copy + Ord, const N: usize>(bytes: &[T; N], known: &[T; N]) -> bool {
    let mut is_above = false;
    let mut lane = 0;
    while lane < N {
        is_above |= bytes[lane] > known[lane];
        lane += 1;
    }
    is_above
}

/// The sum of `a` and `b` by lane.
#[inline]
pub(super) fn plus<const N: usize>(a: &[u64; N], b: &[u64; N]) -> [u64; N] {
    let mut sums = *a;
    add(&mut sums, b);
    sums
}

/// The sum of all, by lane.
pub(super) fn sum<const N: usize>(all: impl Iterator<Item = [u64; N]>) -> [u64; N] {
    all.fold([0; N], |sums, bytes| plus(&sums, &bytes))
}

/// The highest of the numbers of `N` neighbouring tiles, or 0.
pub(super) fn highest<const N: usize>(numbers: &[u64; N]) -> u64 {
    numbers.iter().copied().max().unwrap_or(0)
}
