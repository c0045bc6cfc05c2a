//! Code between `%{` and `}%`: the subset of Python that assertions use, which is `assert`,
//! assignments, `if`, (chained) comparisons, integer arithmetic and strings.
//!
//! Fractions are not supported: `/` rounds down as `//` does.

mod evaluate;
mod parse;

pub(crate) use evaluate::{Environment, EvaluationError, run};
pub(crate) use parse::parse;

#[cfg(test)]
mod tests {
    use super::{Environment, parse, run};
    use crate::diagnostic::ScriptSpan;

    /// The lines that the code prints, or the error of its parser.
    fn printed(code: &str) -> Result<Vec<String>, String> {
        let span = ScriptSpan { start: 0, end: code.len() };
        let statements =
            parse(code, span).map_err(|error| format!("{}: {}", error.line, error.message))?;
        let mut environment = Environment::default();
        let known = |name: &str| (name == "tcpi_snd_cwnd").then_some(10);
        run(&statements, &mut environment, &known).map_err(|_| "it fails".to_owned())?;
        Ok(environment.printed)
    }

    #[test]
    fn branches_are_chosen_by_indentation() {
        let nested = "
            if tcpi_snd_cwnd > 10:
                print(1)
            elif tcpi_snd_cwnd == 10:
                print(2)
                if tcpi_snd_cwnd == 9: print(3); print(4)
                else:
                    print(5)
                print(6)
            else:
                print(7)
            print(8)
        ";
        assert_eq!(printed(nested).unwrap(), ["2", "5", "6", "8"]);
        // The first line follows the bracket.
        let first = " if tcpi_snd_cwnd == 11:
                print(1)
            else:
                print(2); print(3)
            print(4)";
        assert_eq!(printed(first).unwrap(), ["2", "3", "4"]);
        assert_eq!(printed("if 1: print(1)").unwrap(), ["1"]);
        assert_eq!(printed("if 0: print(1); print(2)\nprint(3)").unwrap(), ["3"]);
    }

    #[test]
    fn branches_without_statements_are_refused() {
        for code in
            ["if 1:", "if 1:\nprint(1)", "\n if 1:\n print(1)", "if 1 print(1)", "else: pass"]
        {
            assert!(printed(code).is_err(), "{code}");
        }
        let deep = "if 1: ".repeat(40) + "pass";
        assert!(printed(&deep).is_err());
    }

    #[test]
    fn tuples_are_compared_by_their_first_difference() {
        assert_eq!(
            printed("print((1, 2) == (1, 2), (1, 2) < (1, 3), (2,) > (1, 9))").unwrap(),
            ["1 1 1"]
        );
        assert!(printed("print((1, 2) == (1, 'a'))").is_err());
    }
}
