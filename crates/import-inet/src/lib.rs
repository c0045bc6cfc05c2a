//! The OMNeT++ way of asking: an ini file of INET's QUIC experiment as a scenario.
//!
//! What is known are the parameters of the example `lossy_link` that the INET wiki shows
//! ("Congestion Avoidance on a lossy link"), with `${…}` sweeps, `[Config …]` sections and
//! `extends`. Everything else is told, with its line and column, and left out.
//!
//! Reading order: `text` (lines, sections, keys and values), `sweep` (`${…}` and its values),
//! `mapping` (what a parameter means here), `file` (the scenario file).

mod file;
mod mapping;
mod sweep;
mod text;

pub use mapping::Unmapped;
pub use sweep::Variant;

use file::{AxisChanges, Change, Lossy};
use mapping::{Draft, Stack};
use scenario::{ScenarioError, Study, StudyOverrides, nearest};
use sweep::Sweeps;
use text::{Entry, Section};

/// A scenario, and what of the ini file is not in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The scenario as a TOML file.
    pub toml: String,
    /// Lines that are not in it, in the order of the file.
    pub unmapped: Vec<Unmapped>,
}

/// An ini file.
#[derive(Debug, Clone, PartialEq)]
pub struct Ini {
    file: String,
    sections: Vec<Section>,
}

/// Reads an ini file.
///
/// # Errors
/// All lines that are neither a section nor a key with a value, with their places.
pub fn read(text: &str, file: &str) -> Result<Ini, Vec<ScenarioError>> {
    Ok(Ini { file: file.to_owned(), sections: text::sections(text, file)? })
}

impl Ini {
    /// Names of its `[Config …]` sections; `General` if it has none.
    pub fn configs(&self) -> Vec<&str> {
        let named = self.sections.iter().map(|section| section.name.as_str());
        let named: Vec<&str> = named.filter(|name| *name != text::GENERAL).collect();
        if named.is_empty() { vec![text::GENERAL] } else { named }
    }

    /// All combinations of the values that the sweeps of `config` have, the first sweep slowest.
    ///
    /// # Errors
    /// Sweeps that cannot be read; a configuration that is not there.
    pub fn variants(&self, config: &str) -> Result<Vec<Variant>, Vec<ScenarioError>> {
        Sweeps::of(&self.file, &self.entries(config)?)?.variants()
    }

    /// The scenario of `config` with `profile` at its hosts, a TCP's at the sender alone: with all
    /// its sweeps as `[sweep]`, or one combination of values, number `run` of
    /// [`Ini::variants`].
    ///
    /// # Errors
    /// Values that are not what their parameter takes; a variant that is not there; sweeps that
    /// change the same thing.
    pub fn import(
        &self,
        config: &str,
        run: Option<usize>,
        profile: &str,
    ) -> Result<Imported, Vec<ScenarioError>> {
        let entries = self.entries(config)?;
        let sweeps = Sweeps::of(&self.file, &entries)?;
        let variants = sweeps.variants()?;
        let Some(variant) = variants.get(run.unwrap_or(0)) else {
            let message = format!("[{config}] has no run {}", run.unwrap_or(0));
            let hint = format!("runs are 0 to {}", variants.len() - 1);
            return Err(vec![self.error(message, Some(hint))]);
        };
        let stack = Stack::of(profile);
        let read = |variant: &Variant| {
            mapping::read(&self.file, &entries, stack, |entry| sweeps.value(entry, variant))
        };
        let (draft, mut unmapped) = read(variant)?;
        let mut lossy = draft.lossy();
        let mut along: Vec<Vec<Draft>> = Vec::new();
        if run.is_none() {
            for axis in 0..sweeps.axes().len() {
                let mut drafts = Vec::new();
                for variant in sweeps.along(axis) {
                    let (draft, others) = read(&variant)?;
                    unmapped.extend(others);
                    lossy = [0, 1].map(|side| lossy[side] || draft.lossy()[side]);
                    drafts.push(draft);
                }
                along.push(drafts);
            }
        }
        unmapped.sort_by_key(|one| one.line);
        unmapped.dedup_by_key(|one| one.line);
        let axes = self.axes(&sweeps.axes(), &along, lossy, variants.len())?;
        let name = match run {
            Some(run) => format!("{config}, run {run}"),
            None => config.to_owned(),
        };
        let mut head = vec![match run {
            Some(run) => format!("{}, [{config}], run {run}", self.file),
            None => format!("{}, [{config}]", self.file),
        }];
        if !variant.values.is_empty() {
            let values: Vec<String> =
                variant.values.iter().map(|(name, value)| format!("{name} = {value}")).collect();
            head.push(values.join(", "));
        }
        head.extend(file::supposed(&draft));
        head.extend(file::left_out(&unmapped));
        let toml = draft.file(head, &name, (profile, stack), lossy, axes).to_string();
        // What is written must be a scenario; what is not is the profile's fault.
        Study::load(&toml, "the scenario", &StudyOverrides::default())?;
        Ok(Imported { toml, unmapped })
    }

    /// What each sweep changes; two may not change the same.
    fn axes(
        &self,
        names: &[String],
        along: &[Vec<Draft>],
        lossy: Lossy,
        runs: usize,
    ) -> Result<Vec<AxisChanges>, Vec<ScenarioError>> {
        let mut axes: Vec<(&str, AxisChanges)> = Vec::new();
        for (name, drafts) in names.iter().zip(along) {
            let rows: Vec<Vec<Change>> = drafts.iter().map(|draft| draft.settings(lossy)).collect();
            let Some(first) = rows.first() else { continue };
            let differs = |place: &usize| rows.iter().any(|row| row[*place] != first[*place]);
            let places: Vec<usize> = (0..first.len()).filter(differs).collect();
            if places.is_empty() {
                continue;
            }
            let keys: Vec<String> = places.iter().map(|&place| first[place].0.clone()).collect();
            for (other, axis) in &axes {
                if let Some(key) = keys.iter().find(|key| axis.keys.contains(key)) {
                    let message = format!("the sweeps {other} and {name} both change {key}");
                    let hint = format!("take one combination: --run 0 to {}", runs - 1);
                    return Err(vec![self.error(message, Some(hint))]);
                }
            }
            let values = rows
                .iter()
                .map(|row| places.iter().map(|&place| row[place].1.clone()).collect())
                .collect();
            axes.push((name, AxisChanges { keys, values }));
        }
        Ok(axes.into_iter().map(|(_, axis)| axis).collect())
    }

    /// What holds for `config`, what counts most first: its own, that of those it extends,
    /// `General`.
    fn entries(&self, config: &str) -> Result<Vec<&Entry>, Vec<ScenarioError>> {
        let find = |name: &str| self.sections.iter().find(|section| section.name == name);
        let mut chain: Vec<&Section> = Vec::new();
        let mut next = vec![config.to_owned()];
        while let Some(name) = next.pop() {
            let Some(section) = find(&name) else {
                if name == text::GENERAL {
                    continue;
                }
                let names = self.configs();
                let hint = match nearest(&name, names.iter().copied()) {
                    Some(near) => format!("did you mean {near:?}?"),
                    None => format!("configurations are {}", names.join(", ")),
                };
                let message = format!("there is no [Config {name}]");
                return Err(vec![self.error(message, Some(hint))]);
            };
            if chain.iter().any(|known| known.name == section.name) {
                continue;
            }
            chain.push(section);
            let extends = section.entries.iter().find(|entry| entry.key == "extends");
            if let Some(extends) = extends {
                let bases = extends.value.split(',').map(|base| base.trim().to_owned());
                next.extend(bases.collect::<Vec<_>>().into_iter().rev());
            }
        }
        if !chain.iter().any(|section| section.name == text::GENERAL) {
            chain.extend(find(text::GENERAL));
        }
        Ok(chain.into_iter().flat_map(|section| &section.entries).collect())
    }

    /// A mistake of no line of its own.
    fn error(&self, message: String, hint: Option<String>) -> ScenarioError {
        ScenarioError {
            file: self.file.clone(),
            line: 1,
            column: 1,
            width: 0,
            source_line: String::new(),
            message,
            found: None,
            expected: None,
            hint,
        }
    }
}

#[cfg(test)]
mod tests;
