//! Scenario errors as people read them: the line they wrote, with the mistake marked.

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use super::ScenarioError;

/// How a report is to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Text only.
    Plain,
    /// With the colours of a terminal.
    Coloured,
}

/// All errors, one block each, a blank line between, with a newline at the end.
pub fn report(errors: &[ScenarioError], look: Look) -> String {
    let renderer = match look {
        Look::Plain => Renderer::plain(),
        Look::Coloured => Renderer::styled(),
    };
    let renderer = renderer.decor_style(DecorStyle::Ascii);
    let blocks: Vec<String> = errors.iter().map(|error| renderer.render(&[group(error)])).collect();
    blocks.join("\n\n") + "\n"
}

fn group(error: &ScenarioError) -> Group<'_> {
    let line = &error.source_line;
    let byte = |column: usize| line.char_indices().nth(column).map_or(line.len(), |(at, _)| at);
    let (start, end) = (byte(error.column - 1), byte(error.column - 1 + error.width));
    let mark = AnnotationKind::Primary.span(start..end).label(error.label());
    let snippet =
        Snippet::source(line.as_str()).path(&error.file).line_start(error.line).annotation(mark);
    let group = Level::ERROR.primary_title(error.message.as_str()).element(snippet);
    match &error.hint {
        Some(hint) => group.element(Level::HELP.message(hint.as_str())),
        None => group,
    }
}
