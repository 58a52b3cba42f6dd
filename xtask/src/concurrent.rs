//! Tasks that run some at a time.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs `count` tasks on `threads` threads and returns their results in order. A task gets the
/// number of its thread and its own. A panic in a task is resumed in the caller, once all
/// threads have ended.
pub(crate) fn each<T: Send>(
    threads: usize,
    count: usize,
    task: impl Fn(usize, usize) -> T + Sync,
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let work = |thread: usize| {
        let mut done = Vec::new();
        loop {
            // Relaxed: only the numbers must differ; joining the threads orders the rest.
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count {
                return done;
            }
            done.push((at, task(thread, at)));
        }
    };
    let mut done: Vec<(usize, T)> = std::thread::scope(|scope| {
        let work = &work;
        let workers = (0..threads).map(|thread| scope.spawn(move || work(thread)));
        let workers: Vec<_> = workers.collect();
        let ends = workers.into_iter().map(|worker| match worker.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        ends.flatten().collect()
    });
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_their_order() {
        let squares = each(3, 20, |_, at| if at == 7 { Err(at) } else { Ok(at * at) });
        assert_eq!(squares.len(), 20);
        assert_eq!((squares[7], squares[19]), (Err(7), Ok(361)));
    }

    #[test]
    #[should_panic(expected = "the third")]
    fn a_panic_is_not_lost() {
        each(2, 5, |_, at| assert!(at != 2, "the third"));
    }
}
