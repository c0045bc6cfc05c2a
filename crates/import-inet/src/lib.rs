//! Imports an OMNeT++ ini file of INET's QUIC experiment as a scenario.
//!
//! It maps the parameters of the example `lossy_link` in the INET wiki ("Congestion Avoidance on a
//! lossy link"), with `${…}` iterations, `[Config …]` sections and `extends`. Other lines are
//! reported with line and column, and omitted.
//!
//! Reading order: `text` (lines, sections, keys and values), `sweep` (`${…}` and its values),
//! `mapping` (parameters to settings), `file` (the scenario file).

mod file;
mod mapping;
mod sweep;
mod text;

pub use mapping::UnmappedLine;
pub use sweep::SweepVariant;

use file::{AxisChanges, Lossy, SettingChange};
use indexmap::IndexMap;
use mapping::{InetParameters, StackKind};
use scenario::{ScenarioError, Study, StudyOverrides, nearest};
use sweep::InetSweeps;
use text::{IniEntry, IniSections};

/// A scenario, and the lines of the ini file that are not in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedScenario {
    /// The scenario as a TOML file.
    pub toml: String,
    /// Lines that were not imported, in the order of the file.
    pub unmapped: Vec<UnmappedLine>,
}

/// Most sections that a configuration extends, those of its bases included.
const MOST_BASES: usize = 100;

/// An ini file.
#[derive(Debug, Clone, PartialEq)]
pub struct Ini {
    file: String,
    sections: IniSections,
}

/// Parses an ini file.
///
/// # Errors
/// All lines that are neither a section nor a key with a value, with their positions.
pub fn read(text: &str, file: &str) -> Result<Ini, Vec<ScenarioError>> {
    Ok(Ini { file: file.to_owned(), sections: text::sections(text, file)? })
}

impl Ini {
    /// Returns the names of its `[Config …]` sections; `General` if it has none.
    pub fn configs(&self) -> Vec<&str> {
        let named = self.sections.keys().map(String::as_str);
        let named: Vec<&str> = named.filter(|name| *name != text::GENERAL).collect();
        if named.is_empty() { vec![text::GENERAL] } else { named }
    }

    /// Returns all combinations of the sweeps of `config`; the first sweep changes slowest.
    ///
    /// # Errors
    /// Invalid sweeps or an unknown configuration.
    pub fn variants(&self, config: &str) -> Result<Vec<SweepVariant>, Vec<ScenarioError>> {
        InetSweeps::of(&self.file, &self.entries(config)?)?.variants()
    }

    /// Returns the scenario of `config` with `profile` at its hosts (a TCP profile only at the
    /// sender): with all its sweeps as `[sweep]`, or combination number `run` of
    /// [`Ini::variants`].
    ///
    /// # Errors
    /// Invalid values, an unknown variant, or sweeps over the same key.
    pub fn import(
        &self,
        config: &str,
        run: Option<usize>,
        profile: &str,
    ) -> Result<ImportedScenario, Vec<ScenarioError>> {
        let entries = self.entries(config)?;
        let sweeps = InetSweeps::of(&self.file, &entries)?;
        let variants = sweeps.variants()?;
        let Some(variant) = variants.get(run.unwrap_or(0)) else {
            let message = format!("[{config}] has no run {}", run.unwrap_or(0));
            let hint = format!("runs are 0 to {}", variants.len() - 1);
            return Err(vec![self.error(message, Some(hint))]);
        };
        let stack = StackKind::of(profile);
        let read = |variant: &SweepVariant| {
            mapping::read(&self.file, &entries, stack, |entry| sweeps.value(entry, variant))
        };
        let (draft, mut unmapped) = read(variant)?;
        let mut lossy = draft.lossy();
        let mut along: Vec<Vec<InetParameters>> = Vec::new();
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
        head.extend(file::assumptions(&draft));
        head.extend(file::omissions(&unmapped));
        let toml = draft.file(head, &name, (profile, stack), lossy, axes).to_string();
        // The text must be a valid scenario; an error here is due to the profile.
        Study::load(&toml, "the scenario", &StudyOverrides::default())?;
        Ok(ImportedScenario { toml, unmapped })
    }

    /// Returns the keys and values of each sweep; reports two sweeps over the same key.
    fn axes(
        &self,
        names: &[String],
        along: &[Vec<InetParameters>],
        lossy: Lossy,
        runs: usize,
    ) -> Result<Vec<AxisChanges>, Vec<ScenarioError>> {
        let mut axes: Vec<(&str, AxisChanges)> = Vec::new();
        for (name, drafts) in names.iter().zip(along) {
            let rows: Vec<Vec<SettingChange>> =
                drafts.iter().map(|draft| draft.settings(lossy)).collect();
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

    /// Returns the entries of `config` by precedence: its own, those of the sections it extends,
    /// `General`.
    fn entries(&self, config: &str) -> Result<Vec<&IniEntry>, Vec<ScenarioError>> {
        let mut chain: IndexMap<&str, &[IniEntry]> = IndexMap::new();
        let mut next = vec![config.to_owned()];
        while let Some(name) = next.pop() {
            let Some((name, entries)) = self.sections.get_key_value(&name) else {
                let names = self.configs();
                let hint = match nearest(&name, names.iter().copied()) {
                    Some(near) => format!("did you mean {near:?}?"),
                    None => format!("configurations are {}", names.join(", ")),
                };
                let message = format!("there is no [Config {name}]");
                return Err(vec![self.error(message, Some(hint))]);
            };
            if chain.insert(name, entries).is_some() {
                continue;
            }
            let Some(extends) = entries.iter().find(|entry| entry.key == "extends") else {
                continue;
            };
            if chain.len() > MOST_BASES {
                let message = format!("[Config {config}] extends more than {MOST_BASES} sections");
                return Err(vec![extends.wrong(&self.file, message, "fewer")]);
            }
            let bases = extends.value.split(',').map(|base| base.trim().to_owned());
            next.extend(bases.collect::<Vec<_>>().into_iter().rev());
        }
        if let Some((name, general)) = self.sections.get_key_value(text::GENERAL)
            && !chain.contains_key(name.as_str())
        {
            chain.insert(name, general);
        }
        Ok(chain.into_values().flatten().collect())
    }

    /// Creates an error without a line.
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
