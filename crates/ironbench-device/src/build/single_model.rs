//! Builds a single model from its name and options.

use std::sync::{Arc, Mutex};

use ironbench_core::Result;
use pgbench_script::{Random, nearest};

use super::{ARRAYS, Builder};
use crate::device::Device;
use crate::model::{
    Disk, Flash, Memory, QueueGain, Usage, Volume, ZeroLatency, checked_disk, checked_flash, read_seek,
};
use crate::parameters::{DiskParameters, FlashParameters, ModelParameters, VolumeParameters};
use crate::text::Expression;

/// Assumed fill level of flash, unless the expression sets it. The level is below 1, because operators leave room for
/// databases to grow.
const FILL: f64 = 0.5;

impl Builder<'_> {
    pub(super) fn single_model(&mut self, expression: &Expression, wanted: Option<u64>) -> Result<Box<dyn Device>> {
        let name = &expression.name;
        let Some(parameters) = self.models.get(name) else {
            let known = self.models.devices().chain(ARRAYS.iter().map(|(name, _)| *name));
            let hint = nearest(name, known);
            return Err(self.fault(expression.column, format!("unknown device model {name}")).hint(hint));
        };
        if let Some(member) = expression.members.first() {
            let cause = format!("{name} is a model, so it cannot contain devices");
            return Err(self.fault(member.device.column, cause));
        }
        self.leaves += 1;
        match parameters {
            ModelParameters::Free(parameters) => {
                Ok(Box::new(ZeroLatency::new(self.capacity(expression, &[], parameters.capacity, wanted)?)))
            }
            ModelParameters::Memory(parameters) => {
                let capacity = self.capacity(expression, &[], parameters.capacity, wanted)?;
                Ok(Box::new(Memory::new(parameters, capacity)))
            }
            ModelParameters::Disk(parameters) => self.disk(expression, parameters, wanted),
            ModelParameters::Flash(parameters) => self.flash(expression, parameters, wanted),
            ModelParameters::Volume(parameters) => self.volume(expression, parameters, wanted),
            ModelParameters::Controller(_) => {
                let cause = format!("{name} is a controller or bus, so it stores no data");
                Err(self.fault(expression.column, cause).hint(format!("write behind({name}, DEVICE)")))
            }
        }
    }

    fn disk(
        &self,
        expression: &Expression,
        parameters: &DiskParameters,
        wanted: Option<u64>,
    ) -> Result<Box<dyn Device>> {
        checked_disk(&expression.name, parameters)?;
        let options = self.options(expression, &["capacity", "cache", "stroke"])?;
        let stroke = options.fraction("stroke")?.unwrap_or(1.0);
        if stroke <= 0.0 {
            return Err(options.fault("stroke", "stroke must be greater than 0%".into()));
        }
        let own = parameters.capacity * stroke;
        let capacity = options.number("capacity")?.or(wanted).unwrap_or(own as u64);
        let write_cache = options.boolean("cache")?.unwrap_or(parameters.write_cache);
        let parameters = DiskParameters { write_cache, ..parameters.clone() };
        let seed = Random::new(self.seed.wrapping_add(self.leaves)).next_u64();
        Ok(Box::new(Disk::new(&parameters, capacity, stroke, queue_gain(&parameters), seed)))
    }

    fn flash(
        &self,
        expression: &Expression,
        parameters: &FlashParameters,
        wanted: Option<u64>,
    ) -> Result<Box<dyn Device>> {
        checked_flash(&expression.name, parameters)?;
        let options = self.options(expression, &["capacity", "cache", "fill", "compressible"])?;
        let usage = Usage {
            fill: options.fraction("fill")?.unwrap_or(FILL),
            compressible: options.fraction("compressible")?.unwrap_or(0.0),
        };
        let capacity = options.number("capacity")?.or(wanted).unwrap_or(parameters.capacity as u64);
        let write_cache = options.boolean("cache")?.unwrap_or(parameters.write_cache);
        Ok(Box::new(Flash::new(&FlashParameters { write_cache, ..parameters.clone() }, capacity, usage)))
    }

    fn volume(
        &self,
        expression: &Expression,
        parameters: &VolumeParameters,
        wanted: Option<u64>,
    ) -> Result<Box<dyn Device>> {
        let options = self.options(expression, &["capacity", "iops", "rate"])?;
        let mut parameters = parameters.clone();
        parameters.iops = options.number("iops")?.map_or(parameters.iops, |iops| iops as f64);
        parameters.rate = options.number("rate")?.map_or(parameters.rate, |rate| rate as f64);
        let capacity = options.number("capacity")?.or(wanted).unwrap_or(parameters.capacity as u64);
        Ok(Box::new(Volume::new(&parameters, capacity)))
    }

    fn capacity(&self, expression: &Expression, more: &[&str], own: f64, wanted: Option<u64>) -> Result<u64> {
        let known: Vec<&str> = ["capacity"].iter().chain(more).copied().collect();
        Ok(self.options(expression, &known)?.number("capacity")?.or(wanted).unwrap_or(own as u64))
    }
}

/// Returns how much a disk gains by choosing among its queued commands. The computation takes about 10 ms, so the
/// result is shared by all disks with the same mechanics.
fn queue_gain(parameters: &DiskParameters) -> Arc<QueueGain> {
    type Cached = (Mechanics, Arc<QueueGain>);
    static CACHE: Mutex<Vec<Cached>> = Mutex::new(Vec::new());
    let key = Mechanics {
        rpm: parameters.rpm,
        seeks: [parameters.seek_track_read, parameters.seek_average_read, parameters.seek_full_read],
    };
    let mut known = CACHE.lock().expect("nothing panics while it holds the list");
    if let Some((_, found)) = known.iter().find(|(one, _)| *one == key) {
        return found.clone();
    }
    let made = Arc::new(QueueGain::new(&read_seek(parameters), 60e9 / parameters.rpm));
    known.push((key, made.clone()));
    made
}

#[derive(PartialEq)]
struct Mechanics {
    rpm: f64,
    seeks: [f64; 3],
}
