//! Zeroed memory for buffers and scratch: aligned to a cache line, and in huge pages where it is large.

use std::ptr::NonNull;

const HUGE: usize = 2 << 20;

/// An owned range of zeroed bytes, aligned to 64 bytes or, from 1 MiB on, to a huge page.
pub struct Pages {
    start: NonNull<u8>,
    len: usize,
    /// The mapping around it, for large ranges.
    map: Option<(NonNull<u8>, usize)>,
}

// SAFETY: the range is owned and has no interior state; access follows the rules of `&` and `&mut` on `Pages`, and raw
// pointers taken from it are the business of the code that takes them.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    /// `None` when the system does not have that much memory.
    pub fn zeroed(len: usize) -> Option<Pages> {
        if len >= 1 << 20 { Pages::mapped(len) } else { Pages::small(len) }
    }

    fn small(len: usize) -> Option<Pages> {
        let layout = std::alloc::Layout::from_size_align(len.max(1), 64).ok()?;
        // SAFETY: the layout has a nonzero size.
        let start = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) })?;
        Some(Pages { start, len, map: None })
    }

    fn mapped(len: usize) -> Option<Pages> {
        let size = len.checked_next_multiple_of(HUGE)?.checked_add(HUGE)?;
        // SAFETY: an anonymous private mapping at an address of the system's choice touches no memory of ours.
        let map = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if map == libc::MAP_FAILED {
            return None;
        }
        let base = NonNull::new(map.cast::<u8>())?;
        let shift = base.as_ptr().align_offset(HUGE).min(HUGE);
        // SAFETY: the mapping holds `len` bytes past any shift of at most HUGE.
        let start = unsafe { base.add(shift) };
        #[cfg(target_os = "linux")]
        // SAFETY: the advice concerns our own mapping only; a refusal changes nothing.
        unsafe {
            libc::madvise(start.as_ptr().cast(), size - HUGE, libc::MADV_HUGEPAGE);
        }
        Some(Pages { start, len, map: Some((base, size)) })
    }

    /// Gives the memory back to the system where it was mapped: the range stays, and is zeros when it is used again.
    ///
    /// # Safety
    /// Nobody reads or writes the range meanwhile, or has a reference into it.
    pub unsafe fn discard(&self) {
        #[cfg(target_os = "linux")]
        if self.map.is_some() {
            // SAFETY: the advice concerns pages of our own mapping only, which is anonymous; the caller answers for the rest.
            unsafe {
                libc::madvise(self.start.as_ptr().cast(), self.len.next_multiple_of(HUGE), libc::MADV_DONTNEED);
            }
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    pub fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `start..start+len` is owned, initialised (zeroed) memory, and `&self` keeps it alive.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`; `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        match self.map {
            // SAFETY: exactly the range that `mapped` got from the system.
            Some((base, size)) => unsafe {
                libc::munmap(base.as_ptr().cast(), size);
            },
            None => {
                if let Ok(layout) = std::alloc::Layout::from_size_align(self.len.max(1), 64) {
                    // SAFETY: allocated in `small` with this layout.
                    unsafe { std::alloc::dealloc(self.start.as_ptr(), layout) }
                }
            }
        }
    }
}

impl std::fmt::Debug for Pages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pages({} bytes)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_and_small_ranges_are_zeroed_and_aligned() {
        for (len, align) in [(0, 64), (1, 64), (100_000, 64), (1 << 20, HUGE), ((5 << 20) + 3, HUGE)] {
            let mut p = Pages::zeroed(len).unwrap();
            assert_eq!(p.as_ptr() as usize % align, 0, "{len}");
            assert_eq!(p.bytes().len(), len);
            assert!(p.bytes().iter().all(|&b| b == 0));
            p.bytes_mut().fill(7);
            // SAFETY: nothing else knows of the range.
            unsafe { p.discard() };
            assert!(p.bytes().iter().all(|&b| b == if p.map.is_some() && cfg!(target_os = "linux") { 0 } else { 7 }));
        }
    }

    #[test]
    fn an_impossible_size_is_refused() {
        assert!(Pages::zeroed(usize::MAX - 10).is_none());
        assert!(Pages::zeroed(1 << 60).is_none());
    }
}
