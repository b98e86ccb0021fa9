//! The greatest few of many, in memory that does not grow with the many.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// Keeps as many as it was made for, those with the greatest keys.
pub(super) struct Top<K, V> {
    most: usize,
    kept: BinaryHeap<Reverse<Kept<K, V>>>,
}

struct Kept<K, V> {
    key: K,
    value: V,
}

impl<K: Ord, V> Top<K, V> {
    pub(super) fn new(most: usize) -> Self {
        Self { most, kept: BinaryHeap::new() }
    }

    /// Takes one if it is great enough.
    pub(super) fn offer(&mut self, key: K, value: V) {
        let one = Reverse(Kept { key, value });
        if self.kept.len() < self.most {
            self.kept.push(one);
        } else if let Some(mut least) = self.kept.peek_mut()
            && one < *least
        {
            *least = one;
        }
    }

    /// The least key that is kept, once there are as many as may be.
    pub(super) fn least(&self) -> Option<&K> {
        self.kept.peek().filter(|_| self.kept.len() >= self.most).map(|Reverse(kept)| &kept.key)
    }

    /// What was kept, the greatest first.
    pub(super) fn into_vec(self) -> Vec<V> {
        self.kept.into_sorted_vec().into_iter().map(|Reverse(kept)| kept.value).collect()
    }
}

impl<K: Ord, V> Ord for Kept<K, V> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }
}

impl<K: Ord, V> PartialOrd for Kept<K, V> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K: Ord, V> PartialEq for Kept<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<K: Ord, V> Eq for Kept<K, V> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_are_kept_in_their_order() {
        let mut top = Top::new(3);
        for key in [4, 9, 1, 7, 8, 2] {
            top.offer(key, key * 10);
            assert_eq!(top.least().is_some(), ![4, 9].contains(&key));
        }
        assert_eq!(top.least(), Some(&7));
        assert_eq!(top.into_vec(), [90, 80, 70]);
        let mut none = Top::new(0);
        none.offer(1, 1);
        assert!(none.into_vec().is_empty());
    }
}
