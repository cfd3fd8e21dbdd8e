//! Builds a single model from its name and options.

use std::sync::{Arc, Mutex};

use ironbench_core::Result;
use pgbench_script::{Random, nearest};

use super::{ARRAYS, Builder};
use crate::device::Device;
use crate::figures::{DiskFigures, Figures, FlashFigures, VolumeFigures};
use crate::model::{Choice, Disk, Flash, Free, Memory, Use, Volume, checked_disk, checked_flash, read_seek};
use crate::text::Expression;

/// Assumed fill level of flash, unless the expression sets it. The level is below 1, because operators leave room for
/// databases to grow.
const FILL: f64 = 0.5;

impl Builder<'_> {
    pub(super) fn leaf(&mut self, expression: &Expression, wanted: Option<u64>) -> Result<Box<dyn Device>> {
        let name = &expression.name;
        let Some(figures) = self.models.get(name) else {
            let known = self.models.devices().chain(ARRAYS.iter().map(|(name, _)| *name));
            let hint = nearest(name, known);
            return Err(self.fault(expression.column, format!("unknown device model {name}")).hint(hint));
        };
        if let Some(member) = expression.members.first() {
            let cause = format!("{name} is a model, so it cannot contain devices");
            return Err(self.fault(member.device.column, cause));
        }
        self.leaves += 1;
        match figures {
            Figures::Free(figures) => {
                Ok(Box::new(Free::new(self.capacity(expression, &[], figures.capacity, wanted)?)))
            }
            Figures::Memory(figures) => {
                let capacity = self.capacity(expression, &[], figures.capacity, wanted)?;
                Ok(Box::new(Memory::new(figures, capacity)))
            }
            Figures::Disk(figures) => self.disk(expression, figures, wanted),
            Figures::Flash(figures) => self.flash(expression, figures, wanted),
            Figures::Volume(figures) => self.volume(expression, figures, wanted),
            Figures::Controller(_) => {
                let cause = format!("{name} is a controller or bus, so it stores no data");
                Err(self.fault(expression.column, cause).hint(format!("write behind({name}, DEVICE)")))
            }
        }
    }

    fn disk(&self, expression: &Expression, figures: &DiskFigures, wanted: Option<u64>) -> Result<Box<dyn Device>> {
        checked_disk(&expression.name, figures)?;
        let options = self.options(expression, &["capacity", "cache", "stroke"])?;
        let stroke = options.share("stroke")?.unwrap_or(1.0);
        if stroke <= 0.0 {
            return Err(options.fault("stroke", "stroke must be greater than 0%".into()));
        }
        let own = figures.capacity * stroke;
        let capacity = options.number("capacity")?.or(wanted).unwrap_or(own as u64);
        let write_cache = options.switch("cache")?.unwrap_or(figures.write_cache);
        let figures = DiskFigures { write_cache, ..figures.clone() };
        let seed = Random::new(self.seed.wrapping_add(self.leaves)).next_u64();
        Ok(Box::new(Disk::new(&figures, capacity, stroke, choice(&figures), seed)))
    }

    fn flash(&self, expression: &Expression, figures: &FlashFigures, wanted: Option<u64>) -> Result<Box<dyn Device>> {
        checked_flash(&expression.name, figures)?;
        let options = self.options(expression, &["capacity", "cache", "fill", "compressible"])?;
        let used = Use {
            fill: options.share("fill")?.unwrap_or(FILL),
            compressible: options.share("compressible")?.unwrap_or(0.0),
        };
        let capacity = options.number("capacity")?.or(wanted).unwrap_or(figures.capacity as u64);
        let write_cache = options.switch("cache")?.unwrap_or(figures.write_cache);
        Ok(Box::new(Flash::new(&FlashFigures { write_cache, ..figures.clone() }, capacity, used)))
    }

    fn volume(&self, expression: &Expression, figures: &VolumeFigures, wanted: Option<u64>) -> Result<Box<dyn Device>> {
        let options = self.options(expression, &["capacity", "iops", "rate"])?;
        let mut figures = figures.clone();
        figures.iops = options.number("iops")?.map_or(figures.iops, |iops| iops as f64);
        figures.rate = options.number("rate")?.map_or(figures.rate, |rate| rate as f64);
        let capacity = options.number("capacity")?.or(wanted).unwrap_or(figures.capacity as u64);
        Ok(Box::new(Volume::new(&figures, capacity)))
    }

    fn capacity(&self, expression: &Expression, more: &[&str], own: f64, wanted: Option<u64>) -> Result<u64> {
        let known: Vec<&str> = ["capacity"].iter().chain(more).copied().collect();
        Ok(self.options(expression, &known)?.number("capacity")?.or(wanted).unwrap_or(own as u64))
    }
}

/// Returns how much a disk gains by choosing among its queued commands. The computation takes about 10 ms, so the
/// result is shared by all disks with the same mechanics.
fn choice(figures: &DiskFigures) -> Arc<Choice> {
    type Known = (Mechanics, Arc<Choice>);
    static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());
    let key = Mechanics {
        rpm: figures.rpm,
        seeks: [figures.seek_track_read, figures.seek_average_read, figures.seek_full_read],
    };
    let mut known = KNOWN.lock().expect("nothing panics while it holds the list");
    if let Some((_, found)) = known.iter().find(|(one, _)| *one == key) {
        return found.clone();
    }
    let made = Arc::new(Choice::new(&read_seek(figures), 60e9 / figures.rpm));
    known.push((key, made.clone()));
    made
}

#[derive(PartialEq)]
struct Mechanics {
    rpm: f64,
    seeks: [f64; 3],
}
