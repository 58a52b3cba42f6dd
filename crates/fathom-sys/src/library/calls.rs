//! Commands that a library has taken and that end in a callback.
//!
//! ```text
//!  engine ── begin(slot) ──► library ── callback(result) ──► returned ── next ──► engine
//! ```

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::rc::Rc;

use fathom_core::Errno;

/// Table of the calls of one client, which also has what they returned. A callback gets the address
/// of its call, which does not change.
#[derive(Debug)]
pub(crate) struct Calls<T: 'static>(Rc<[Call<T>]>);

/// One call at a time: that of a slot, or the last one, by which the client waits.
#[derive(Debug)]
pub(crate) struct Call<T: 'static> {
    number: u32,
    in_flight: Cell<bool>,
    /// Place for the data that the call returns, and its bytes.
    place: Cell<(*mut u8, usize)>,
    /// State that the call carries along, and data that it returns beside its result.
    pub(crate) extra: RefCell<T>,
    returned: Rc<Returned>,
}

/// Results that are not yet taken.
#[derive(Debug)]
struct Returned {
    results: RefCell<VecDeque<(u32, i32)>>,
    /// First failure with each errno of which the library says more.
    failures: RefCell<Vec<(Errno, String)>>,
}

impl<T: Default> Calls<T> {
    /// Creates calls of these slots, and one more.
    pub(crate) fn new(slots: u32) -> Self {
        let returned = Rc::new(Returned {
            results: RefCell::new(VecDeque::with_capacity(slots as usize + 1)),
            failures: RefCell::default(),
        });
        let calls = (0..=slots).map(|number| Call {
            number,
            in_flight: Cell::new(false),
            place: Cell::new((ptr::null_mut(), 0)),
            extra: RefCell::default(),
            returned: Rc::clone(&returned),
        });
        Self(calls.collect())
    }

    /// Returns the number of the call by which the client waits.
    pub(crate) fn waiting(&self) -> u32 {
        self.0[self.0.len() - 1].number
    }

    /// Returns a call.
    pub(crate) fn call(&self, number: u32) -> &Call<T> {
        &self.0[number as usize]
    }

    /// Marks a call as in flight, and returns what its callback gets.
    ///
    /// # Panics
    /// If it is in flight.
    pub(crate) fn begin(&self, number: u32, place: (*mut u8, usize)) -> *mut c_void {
        let call = self.call(number);
        assert!(!call.in_flight.replace(true), "call {number} is in flight");
        call.place.set(place);
        ptr::from_ref(call).cast_mut().cast()
    }

    /// Takes the next result.
    pub(crate) fn next(&self) -> Option<(u32, i32)> {
        self.0[0].returned.results.borrow_mut().pop_front()
    }

    /// Ends a call that has no callback to come, or whose callback is to be ignored.
    pub(crate) fn end(&self, number: u32, result: i32) {
        self.call(number).end(result);
    }

    /// Returns whether a call is in flight.
    pub(crate) fn is_in_flight(&self, number: u32) -> bool {
        self.call(number).in_flight.get()
    }

    /// Ends all calls.
    pub(crate) fn end_all(&self, result: i32) {
        self.0.iter().for_each(|call| call.end(result));
    }

    /// Keeps the words about the first failure with an errno.
    pub(crate) fn explain(&self, errno: Errno, text: String) {
        self.0[0].explain(errno, text);
    }

    /// Returns the words about a failure.
    pub(crate) fn explanation(&self, errno: Errno) -> Option<String> {
        let failures = self.0[0].returned.failures.borrow();
        let known = failures.iter().find(|(own, _)| *own == errno);
        known.map(|(_, text)| text.clone())
    }
}

impl<T> Call<T> {
    /// Returns the call of a callback; `None` if it was given up in the meantime.
    ///
    /// # Safety
    /// The address came from [`Calls::begin`], and the table still exists.
    pub(crate) unsafe fn of_callback<'a>(private: *mut c_void) -> Option<&'a Self> {
        let call = NonNull::new(private)?.cast::<Self>();
        // SAFETY: as the caller promises; a call is only ever borrowed as shared.
        let call = unsafe { call.as_ref() };
        call.in_flight.get().then_some(call)
    }

    /// Copies data to the call's place, as far as there is room; returns how many bytes.
    ///
    /// # Safety
    /// `data` is the address of this many bytes.
    pub(crate) unsafe fn copy(&self, data: *const u8, bytes: usize) -> usize {
        let (place, room) = self.place.get();
        let bytes = bytes.min(room);
        if bytes > 0 && !data.is_null() {
            // SAFETY: `begin` got a place of `room` bytes, which belongs to the call until it ends;
            // the library's data are apart from it, and as long as the caller promises.
            unsafe { ptr::copy_nonoverlapping(data, place, bytes) };
        }
        bytes
    }

    /// Ends the call.
    pub(crate) fn end(&self, result: i32) {
        if self.in_flight.replace(false) {
            let mut results = self.returned.results.borrow_mut();
            results.push_back((self.number, result));
        }
    }

    /// Keeps the words about the first failure with an errno.
    pub(crate) fn explain(&self, errno: Errno, text: String) {
        let mut failures = self.returned.failures.borrow_mut();
        if !text.is_empty() && failures.iter().all(|(own, _)| *own != errno) {
            failures.push((errno, text));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_end_once_and_late_callbacks_are_ignored() {
        let calls = Calls::<()>::new(2);
        let mut room = [0; 4];
        let private = calls.begin(1, (room.as_mut_ptr(), room.len()));
        // SAFETY: begun just now.
        let call = unsafe { Call::<()>::of_callback(private) }.unwrap();
        // SAFETY: an array of 6 bytes.
        assert_eq!(unsafe { call.copy([7; 6].as_ptr(), 6) }, 4);
        call.end(4);
        calls.end_all(-5);
        assert_eq!(calls.next(), Some((1, 4)));
        assert_eq!(calls.next(), None);
        // SAFETY: the table exists.
        assert!(unsafe { Call::<()>::of_callback(private) }.is_none());
        assert_eq!(room, [7; 4]);
        assert_eq!(calls.waiting(), 2);
    }

    #[test]
    fn the_first_words_about_an_errno_are_kept() {
        let calls = Calls::<()>::new(1);
        for text in ["", "first", "second"] {
            calls.explain(Errno::EIO, text.into());
        }
        assert_eq!(calls.explanation(Errno::EIO).as_deref(), Some("first"));
        assert_eq!(calls.explanation(Errno::EBADF), None);
    }
}
