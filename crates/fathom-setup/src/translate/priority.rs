//! I/O priorities of a job's thread and of single ops.

use fathom_core::{Direction, IoPriority, PerDirection};
use fathom_job::{Options, PriorityShare as WrittenOption};
use fathom_workload::{PriorityChoice, PriorityShare};

/// Returns the priority of the job's thread, if one is set. A level or hint without a class implies
/// the best-effort class, as in fio.
pub fn of_thread(options: &Options) -> Option<IoPriority> {
    if options.prio.is_none() && options.prioclass.is_none() && options.priohint.is_none() {
        return None;
    }
    Some(IoPriority {
        class: match options.prioclass.unwrap_or(0) {
            0 => BEST_EFFORT,
            class => class,
        },
        level: options.prio.unwrap_or(0),
        hint: options.priohint.unwrap_or(0),
    })
}

/// Returns the priorities of single ops (`cmdprio*`); trims never have one, as in fio.
pub fn of_ops(options: &Options) -> Option<PerDirection<PriorityChoice>> {
    let own = of_thread(options).map_or(0, IoPriority::to_raw);
    let choices = PerDirection::from_fn(|direction| match direction {
        Direction::Read | Direction::Write => choice(options, direction, own),
        Direction::Trim => PriorityChoice::Own,
    });
    let any = choices
        .iter()
        .any(|(_, choice)| *choice != PriorityChoice::Own);
    any.then_some(choices)
}

fn choice(options: &Options, direction: Direction, own: u16) -> PriorityChoice {
    let usual = IoPriority {
        class: options.cmdprio_class[direction],
        level: options.cmdprio[direction],
        hint: options.cmdprio_hint[direction],
    };
    let share = |percent, priority: IoPriority| PriorityShare {
        percent,
        // 0 selects the thread's own priority, so that equal priorities are counted together.
        priority: match priority.to_raw() {
            raw if raw == own => 0,
            raw => raw,
        },
    };
    let percent = options.cmdprio_percentage[direction];
    if percent > 0 {
        return PriorityChoice::Share(share(percent, usual));
    }
    let entry = |written: &WrittenOption| {
        // No op is larger than 32 bits, so such an entry never matches.
        let bytes = u32::try_from(written.bytes).ok()?;
        let priority = written.priority.unwrap_or(usual);
        (written.percent > 0).then(|| (bytes, share(written.percent, priority)))
    };
    let list = options.cmdprio_bssplit[direction].iter().filter_map(entry);
    let mut list: Vec<(u32, PriorityShare)> = list.collect();
    // Stable: entries of one size keep their order.
    list.sort_by_key(|(bytes, _)| *bytes);
    match list.is_empty() {
        true => PriorityChoice::Own,
        false => PriorityChoice::BySize(list),
    }
}

/// `IOPRIO_CLASS_BE` of ioprio_set(2).
const BEST_EFFORT: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_thread(class: Option<u8>, level: Option<u8>, hint: Option<u16>, want: Option<u16>) {
        let options = Options {
            prioclass: class,
            prio: level,
            priohint: hint,
            ..Options::default()
        };
        assert_eq!(of_thread(&options).map(IoPriority::to_raw), want);
    }

    #[test]
    fn level_alone_is_best_effort() {
        // Classes and levels as fio 3.33 prints them for these options.
        check_thread(None, None, None, None);
        check_thread(None, Some(3), None, Some(0x4003));
        check_thread(None, Some(0), None, Some(0x4000));
        check_thread(Some(0), None, None, Some(0x4000));
        check_thread(Some(1), None, None, Some(0x2000));
        check_thread(Some(3), Some(7), None, Some(0x6007));
        check_thread(None, None, Some(1), Some(0x4008));
    }

    #[test]
    fn no_priority_means_no_choices() {
        assert_eq!(of_ops(&Options::default()), None);
        let by_size = vec![WrittenOption {
            bytes: 4096,
            percent: 0,
            priority: None,
        }];
        let options = Options {
            cmdprio_bssplit: PerDirection::all(by_size),
            cmdprio_class: PerDirection::all(3),
            ..Options::default()
        };
        assert_eq!(of_ops(&options), None);
    }

    #[test]
    fn trims_and_the_own_priority_have_no_choice() {
        let options = Options {
            prioclass: Some(1),
            cmdprio_percentage: PerDirection::all(30),
            ..Options::default()
        };
        let choices = of_ops(&options).unwrap();
        let share = PriorityShare {
            percent: 30,
            priority: 0,
        };
        assert_eq!(choices.read, PriorityChoice::Share(share));
        assert_eq!(choices.trim, PriorityChoice::Own);
    }

    #[test]
    fn sizes_without_a_priority_get_the_default() {
        let written = |bytes, percent, priority| WrittenOption {
            bytes,
            percent,
            priority,
        };
        let spelled = IoPriority {
            class: 2,
            level: 3,
            hint: 1,
        };
        let list = vec![
            written(8192, 40, None),
            written(4096, 50, Some(spelled)),
            written(4096, 20, None),
            written(1 << 40, 20, None),
        ];
        let options = Options {
            cmdprio_bssplit: PerDirection::new(list, Vec::new(), Vec::new()),
            cmdprio_class: PerDirection::all(3),
            cmdprio: PerDirection::all(5),
            ..Options::default()
        };
        let share = |percent, priority| PriorityShare { percent, priority };
        let want = vec![
            (4096, share(50, 0x400b)),
            (4096, share(20, 0x6005)),
            (8192, share(40, 0x6005)),
        ];
        let choices = of_ops(&options).unwrap();
        assert_eq!(choices.read, PriorityChoice::BySize(want));
        assert_eq!(choices.write, PriorityChoice::Own);
    }
}
