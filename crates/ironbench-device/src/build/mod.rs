//! Builds a device from an expression and the models that the expression names.

mod options;
mod single_model;

use ironbench_core::{Error, Result};
use pgbench_script::nearest;

use self::options::Options;
use crate::array::{Mirror, Parity, SharedController, Stripe};
use crate::device::{Device, in_order};
use crate::parameters::{ModelParameters, Models};
use crate::text::{Expression, Member};

/// Names and descriptions of composite devices. All other names are names of models.
pub const ARRAYS: [(&str, &str); 6] = [
    ("raid0", "stripes over its members: raid0(4, ssd-sata-2011, stripe=64K)"),
    ("raid1", "every byte on every member: raid1(2, hdd-10k)"),
    ("raid10", "stripes over mirrored pairs: raid10(8, hdd-15k)"),
    ("raid5", "stripes with one parity: raid5(5, hdd-7200, stripe=64K)"),
    ("spread", "extents in turn over members, alike or not: spread(4 x ssd-a, 2 x ssd-b, extent=64K)"),
    ("behind", "a controller's or a bus's limits, shared by what is behind it: behind(raid-card, raid0(8, hdd-7200))"),
];

/// Default chunk size of an array. The chunk size of Linux's md was 64 KiB until 2010, and an extent of SQL Server has
/// 64 KiB.
const CHUNK: u64 = 64 << 10;

/// Maximum number of models in one device. Nested arrays multiply their counts, and each model takes memory.
const MAX_MODELS: u64 = 4096;

/// Builds the device that `expression` describes, with at least `capacity` bytes. The models are scaled to that
/// capacity with unchanged speeds, so that a small database is spread over the whole device. With None, the models keep
/// their own capacity.
///
/// # Errors
/// Input: the expression cannot be built. The error names the column.
pub fn build(expression: &Expression, models: &Models, capacity: Option<u64>, seed: u64) -> Result<Box<dyn Device>> {
    let mut builder = Builder { models, whole: expression, seed, leaves: 0 };
    let models_in_it = model_count(expression);
    if models_in_it > MAX_MODELS {
        let cause = format!("{models_in_it} devices exceed the maximum of {MAX_MODELS}");
        return Err(builder.fault(expression.column, cause));
    }
    let device = builder.device(expression, capacity)?;
    match capacity {
        Some(wanted) if device.capacity() < wanted => {
            let cause = format!("the device has {} bytes, but {wanted} are needed", device.capacity());
            Err(builder.fault(expression.column, cause).hint("remove capacity=: the size then follows from the need"))
        }
        _ => Ok(device),
    }
}

struct Builder<'a> {
    models: &'a Models,
    whole: &'a Expression,
    seed: u64,
    leaves: u64,
}

impl Builder<'_> {
    fn device(&mut self, expression: &Expression, wanted: Option<u64>) -> Result<Box<dyn Device>> {
        let device = match expression.name.as_str() {
            "raid0" => self.stripe(expression, wanted, "stripe"),
            "spread" => self.stripe(expression, wanted, "extent"),
            "raid1" => {
                self.options(expression, &[])?;
                Ok(Box::new(Mirror::new(self.members(expression, wanted, 2)?)) as Box<dyn Device>)
            }
            "raid10" => self.striped_mirrors(expression, wanted),
            "raid5" => {
                let chunk = self.chunk(expression, "stripe")?;
                let data = count(expression).saturating_sub(1).max(1);
                let members = self.members(expression, wanted.map(|all| member_capacity(all, data, chunk)), 3)?;
                Ok(Box::new(Parity::new(members, chunk)) as Box<dyn Device>)
            }
            "behind" => self.controller(expression, wanted),
            _ => self.single_model(expression, wanted),
        };
        device.map(in_order)
    }

    fn stripe(&mut self, expression: &Expression, wanted: Option<u64>, option: &str) -> Result<Box<dyn Device>> {
        let chunk = self.chunk(expression, option)?;
        let each = wanted.map(|all| member_capacity(all, count(expression), chunk));
        Ok(Box::new(Stripe::new(self.members(expression, each, 1)?, chunk)))
    }

    fn striped_mirrors(&mut self, expression: &Expression, wanted: Option<u64>) -> Result<Box<dyn Device>> {
        let chunk = self.chunk(expression, "stripe")?;
        let pairs = count(expression) / 2;
        if !count(expression).is_multiple_of(2) {
            return Err(self.fault(expression.column, "raid10 needs an even number of members".into()));
        }
        let mut members =
            self.members(expression, wanted.map(|all| member_capacity(all, pairs, chunk)), 4)?.into_iter();
        let mut mirrors: Vec<Box<dyn Device>> = Vec::new();
        while let (Some(one), Some(other)) = (members.next(), members.next()) {
            mirrors.push(in_order(Box::new(Mirror::new(vec![one, other]))));
        }
        Ok(Box::new(Stripe::new(mirrors, chunk)))
    }

    /// Builds a device behind a controller or a bus.
    fn controller(&mut self, expression: &Expression, wanted: Option<u64>) -> Result<Box<dyn Device>> {
        self.options(expression, &[])?;
        let [controller, inner] = expression.members.as_slice() else {
            let cause = "behind needs a controller or bus, and one device".to_owned();
            return Err(self
                .fault(expression.column, cause)
                .hint("write for example behind(raid-card, raid0(8, hdd-7200))"));
        };
        if controller.count != 1 || inner.count != 1 {
            let cause = "combine several devices into one".to_owned();
            return Err(self
                .fault(inner.device.column, cause)
                .hint("for example behind(raid-card, raid0(8, hdd-7200))"));
        }
        let named = &controller.device;
        let Some(ModelParameters::Controller(parameters)) = self.models.get(&named.name) else {
            let hint = nearest(&named.name, self.models.controllers());
            return Err(self.fault(named.column, format!("unknown controller or bus {}", named.name)).hint(hint));
        };
        let write_cache = self.options(named, &["cache"])?.boolean("cache")?.unwrap_or(parameters.write_cache);
        let device = self.device(&inner.device, wanted)?;
        Ok(Box::new(SharedController::new(parameters, device, write_cache)))
    }

    /// Builds the members of a composite device, each with the capacity `each`.
    fn members(&mut self, expression: &Expression, each: Option<u64>, least: u64) -> Result<Vec<Box<dyn Device>>> {
        if count(expression) < least {
            let cause = format!("{} needs at least {least} members", expression.name);
            return Err(self.fault(expression.column, cause));
        }
        let mut members = Vec::new();
        for member in &expression.members {
            for _ in 0..member.count {
                members.push(self.device(&member.device, each)?);
            }
        }
        Ok(members)
    }

    /// Returns the chunk size that an option sets, or the default.
    fn chunk(&self, expression: &Expression, option: &str) -> Result<u64> {
        let options = self.options(expression, &[option])?;
        let Some(chunk) = options.number(option)? else { return Ok(CHUNK) };
        if chunk < 4096 || !chunk.is_multiple_of(4096) || chunk > 1 << 30 {
            return Err(options.fault(option, format!("{option} must be a multiple of 4K, up to 1G")));
        }
        Ok(chunk)
    }

    /// Returns the options of one part of the expression. Returns an error if an option is not in `known`.
    fn options<'e>(&self, expression: &'e Expression, known: &[&str]) -> Result<Options<'e>> {
        Options::new(self.whole, expression, known)
    }

    fn fault(&self, column: usize, cause: String) -> Error {
        fault(self.whole, column, cause)
    }
}

fn fault(whole: &Expression, column: usize, cause: String) -> Error {
    Error::input(format!("device \"{}\"", whole.source), format!("column {column}: {cause}"))
}

/// Returns the number of members of a composite device.
fn count(expression: &Expression) -> u64 {
    expression.members.iter().map(|member| u64::from(member.count)).sum()
}

/// Returns the number of models in an expression. If it exceeds the range of `u64`, returns the largest `u64`.
fn model_count(expression: &Expression) -> u64 {
    let of = |member: &Member| u64::from(member.count).saturating_mul(model_count(&member.device));
    expression.members.iter().map(of).fold(0, u64::saturating_add).max(1)
}

/// Returns the capacity of each of `members` members, in whole chunks.
fn member_capacity(all: u64, members: u64, chunk: u64) -> u64 {
    all.div_ceil(members.max(1)).next_multiple_of(chunk)
}

#[cfg(test)]
mod tests;
