//! Changes to a source tree that was unpacked here, before a guest's kernel is built from it.

use std::fs;
use std::path::Path;

use super::build::{BuildError, with};

/// What a reading of the clock costs a process on User-Mode Linux, in its source (timer_read), and without.
pub(super) const CLOCK_COST: (&str, &str) =
    ("time_travel_update_time_rel(TIMER_MULTIPLIER);", "time_travel_update_time_rel(0);");

/// Makes readings of the clock take no virtual time, as on a machine they take no more than tens of nanoseconds; a
/// kernel without the line is left as it is. Only in trees unpacked here: `ackclock kernel check` shows the cost.
pub(super) fn free_clock(tree: &Path) -> Result<(), BuildError> {
    change(&tree.join("arch/um/kernel/time.c"), without_clock_cost)
}

/// The step of User-Mode Linux's clock source, the least time for which its timer is programmed, and what each timer is
/// late besides (itimer_next_event), in its source, and exact to the nanosecond.
///
/// With that step a timer whose time the clock does not show yet when it fires is programmed again, for half a
/// microsecond. On a path that sends only what is acknowledged, all that the timers were late adds up.
pub(super) const TIMER_STEPS: [(&str, &str, &str); 3] = [
    (STEPS, "#define TIMER_MULTIPLIER 256", "#define TIMER_MULTIPLIER 1"),
    (STEPS, "#define TIMER_MIN_DELTA  500", "#define TIMER_MIN_DELTA  1"),
    ("arch/um/kernel/time.c", "\tdelta += 1;\n", "\tdelta += 0;\n"),
];
const STEPS: &str = "arch/um/include/linux/time-internal.h";

/// Lets clock and timer of a guest be exact, as its models' are; a kernel without these lines is left as it is. Only in
/// trees unpacked here.
pub(super) fn exact_timer(tree: &Path) -> Result<(), BuildError> {
    for (file, line, exact) in TIMER_STEPS {
        let file = tree.join(file);
        if file.is_file() {
            change(&file, |source| with_line(source, line, exact))?;
        }
    }
    Ok(())
}

/// Writes a source file of the tree if `changed` changes it.
fn change(file: &Path, changed: impl FnOnce(&str) -> Option<String>) -> Result<(), BuildError> {
    let text = fs::read_to_string(file).map_err(with(file))?;
    changed(&text).map_or(Ok(()), |text| fs::write(file, text).map_err(with(file)))
}

/// The source with another line in place of this one; `None` if it has none.
fn with_line(source: &str, line: &str, other: &str) -> Option<String> {
    source.contains(line).then(|| source.replace(line, other))
}

/// What a kernel before 6.10 says of the processes that it traces, and what it needs to say for them to end with it.
const TRACING: (&str, &str) =
    ("PTRACE_O_TRACESYSGOOD) < 0", "(PTRACE_O_TRACESYSGOOD | (1 << 20))) < 0");

/// Makes the processes of a guest's users end with its kernel (`PTRACE_O_EXITKILL`), where a kernel clones them: they
/// would run on. Only in trees unpacked here.
pub(super) fn end_with_kernel(tree: &Path) -> Result<(), BuildError> {
    let file = tree.join("arch/um/os-Linux/skas/process.c");
    let Ok(text) = fs::read_to_string(&file) else { return Ok(()) };
    ending_with_tracer(&text).map_or(Ok(()), |text| fs::write(&file, text).map_err(with(&file)))
}

/// The source with those lines changed; `None` if its kernel clones no processes, or if it is changed already.
fn ending_with_tracer(source: &str) -> Option<String> {
    let clones = source.contains("copy_context_skas0") && source.contains(TRACING.0);
    clones.then(|| source.replace(TRACING.0, TRACING.1))
}

/// The source with that line changed; `None` if it has none.
fn without_clock_cost(source: &str) -> Option<String> {
    with_line(source, CLOCK_COST.0, CLOCK_COST.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_an_unpacked_tree_costs_nothing() {
        let line = |cost: &str| format!("\t\t\ttime_travel_update_time_rel({cost});\n");
        let changed = without_clock_cost(&line("TIMER_MULTIPLIER")).unwrap();
        assert_eq!(changed, line("0"));
        assert_eq!(without_clock_cost(&changed), None);
    }

    #[test]
    fn the_timer_of_an_unpacked_tree_is_exact() {
        // As 6.12 has them, and already changed.
        let source = "#define TIMER_MULTIPLIER 256\n#define TIMER_MIN_DELTA  500\n\tdelta += 1;\n";
        let changed = TIMER_STEPS.iter().fold(source.to_owned(), |source, (_, line, exact)| {
            with_line(&source, line, exact).unwrap()
        });
        let exact = "#define TIMER_MULTIPLIER 1\n#define TIMER_MIN_DELTA  1\n\tdelta += 0;\n";
        assert_eq!(changed, exact);
        let again = |(_, line, exact): &(&str, &str, &str)| with_line(&changed, line, exact);
        assert!(TIMER_STEPS.iter().all(|step| again(step).is_none()));
    }

    #[test]
    fn processes_that_an_old_kernel_clones_end_with_it() {
        let line = |options: &str| format!("ptrace(21, pid, NULL, (void *){options} < 0) {{\n");
        let old = format!("copy_context_skas0\n{}", line("PTRACE_O_TRACESYSGOOD)"));
        let changed = ending_with_tracer(&old).unwrap();
        assert!(changed.ends_with(&line("(PTRACE_O_TRACESYSGOOD | (1 << 20)))")), "{changed}");
        assert_eq!(ending_with_tracer(&changed), None);
        assert_eq!(ending_with_tracer(&line("PTRACE_O_TRACESYSGOOD)")), None, "6.12 clones none");
    }
}
