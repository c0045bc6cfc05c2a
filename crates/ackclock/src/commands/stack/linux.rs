//! The commands, on systems that have the programs.

use std::path::Path;
use std::process::ExitCode;

use guest::stack::build::{self, BuiltStack, RECIPES, StackRecipe};
use guest::stack::check::{BYTES, CheckedStack, check as check_stack};
use quic::real::RealStack;
use scenario::{MissingStack, nearest};

use crate::cli::{StackBuildArgs, StackCheckArgs};
use crate::commands::kernel::linux::cache;
use crate::failure::{Failure, print_error};
use crate::output::print;

pub(super) fn build(args: &StackBuildArgs) -> Result<ExitCode, Failure> {
    let Some(recipe) = build::find(&args.name) else {
        let known = RECIPES.each_ref().map(|recipe| recipe.wanted);
        let failure = Failure::new(format!("unknown stack `{}`", args.name));
        return Err(failure.hint(match nearest(&args.name, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("stacks are {}", quoted(&known)),
        }));
    };
    print_error(&format!("building {}\n", recipe.source));
    let stack = build::build(recipe, &cache()?).map_err(|error| Failure::new(error.to_string()))?;
    print_error("checking it\n");
    checked(&[stack])
}

pub(super) fn list() -> Result<ExitCode, Failure> {
    let lines: String = RECIPES
        .iter()
        .map(|recipe| {
            Ok(match built(recipe)? {
                Some(stack) => line(&stack) + "\n",
                None => format!(
                    "{:<16} not built: ackclock stack build {}\n",
                    recipe.name, recipe.wanted
                ),
            })
        })
        .collect::<Result<_, Failure>>()?;
    print(&lines)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn check(args: &StackCheckArgs) -> Result<ExitCode, Failure> {
    let mut stacks = Vec::new();
    for recipe in &RECIPES {
        let asked = args.name.as_deref().is_none_or(|name| name == recipe.name);
        stacks.extend(if asked { built(recipe)? } else { None });
    }
    if stacks.is_empty() {
        let failure = match &args.name {
            Some(name) => Failure::new(format!("there is no stack `{name}`")),
            None => Failure::new("there is no stack to check"),
        };
        return Err(failure.hint("`ackclock stack list` shows those that can be built"));
    }
    checked(&stacks)
}

/// Finds a stack for a host.
pub(super) fn find_program(
    name: &str,
    logs: Option<&Path>,
) -> Result<&'static dyn RealStack, MissingStack> {
    let missing = |message: String, hint: String| MissingStack { message, hint };
    let Some(recipe) = build::find(name) else {
        let known = RECIPES.each_ref().map(|recipe| recipe.name);
        let hint = match nearest(name, known) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => format!("stacks are {}", quoted(&known)),
        };
        return Err(missing(format!("unknown stack \"{name}\""), hint));
    };
    let unreadable = |error: &Failure| missing(error.message(), "build it again".to_owned());
    let found = built(recipe).map_err(|error| unreadable(&error))?;
    let program = found.as_ref().and_then(BuiltStack::stack).ok_or_else(|| {
        let hint = format!("`ackclock stack build {}` builds it", recipe.wanted);
        missing(format!("the stack \"{}\" is not built", recipe.name), hint)
    })?;
    Ok(match logs {
        Some(logs) => program.with_captures(logs),
        None => program,
    }
    .leak())
}

fn built(recipe: &StackRecipe) -> Result<Option<BuiltStack>, Failure> {
    let cache = cache()?;
    build::built(&cache, recipe.name).map_err(|error| Failure::file("read", cache.path(), &error))
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn line(stack: &BuiltStack) -> String {
    let info = &stack.info;
    format!("{:<16} {}, by {}", info.name, info.source, info.compiler)
}

/// Checks stacks and prints the results.
fn checked(stacks: &[BuiltStack]) -> Result<ExitCode, Failure> {
    let mut is_good = true;
    for stack in stacks {
        let name = &stack.info.name;
        let Some(program) = stack.stack() else {
            return Err(Failure::new(format!("this version has no stack `{name}`")));
        };
        let checked = check_stack(program.leak())
            .map_err(|error| Failure::new(format!("the check of {name}: {error}")))?;
        print(&text(stack, &checked))?;
        is_good &= checked.is_good();
    }
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn text(stack: &BuiltStack, checked: &CheckedStack) -> String {
    let verdict = match checked.is_good() {
        true => "the same twice",
        false if checked.digests[0] == checked.digests[1] => "the same twice, NOT completed",
        false => "NOT the same twice",
    };
    let mut text = format!(
        "{}\n  {BYTES} bytes and 20 requests at 50 Mbit/s and 20 ms in {:.6} s, {} packets: {verdict}\n",
        line(stack),
        checked.outcome.ended.as_secs_f64(),
        checked.packets[0],
    );
    for digest in &checked.digests {
        text += &format!("  sha256 {digest}\n");
    }
    text
}
