//! The functions of expressions, with their names, numbers of arguments, and argument checks.

use super::expression::EvalError;
use super::permute::permute;
use super::{Random, Value, hash};
use std::ops::RangeInclusive;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    Abs,
    Debug,
    Double,
    Exp,
    Greatest,
    HashFnv1a,
    HashMurmur2,
    Int,
    Least,
    Ln,
    Mod,
    Permute,
    Pi,
    Power,
    Random,
    RandomExponential,
    RandomGaussian,
    RandomZipfian,
    Sqrt,
}

/// Maximum number of arguments, as in pgbench.
pub const MAX_ARGUMENTS: usize = 16;

/// Name, function, and number of arguments.
const FUNCTIONS: [(&str, Function, RangeInclusive<usize>); 21] = [
    ("abs", Function::Abs, 1..=1),
    ("debug", Function::Debug, 1..=1),
    ("double", Function::Double, 1..=1),
    ("exp", Function::Exp, 1..=1),
    ("greatest", Function::Greatest, 1..=MAX_ARGUMENTS),
    ("hash", Function::HashMurmur2, 1..=2),
    ("hash_fnv1a", Function::HashFnv1a, 1..=2),
    ("hash_murmur2", Function::HashMurmur2, 1..=2),
    ("int", Function::Int, 1..=1),
    ("least", Function::Least, 1..=MAX_ARGUMENTS),
    ("ln", Function::Ln, 1..=1),
    ("mod", Function::Mod, 2..=2),
    ("permute", Function::Permute, 2..=3),
    ("pi", Function::Pi, 0..=0),
    ("pow", Function::Power, 2..=2),
    ("power", Function::Power, 2..=2),
    ("random", Function::Random, 2..=2),
    ("random_exponential", Function::RandomExponential, 3..=3),
    ("random_gaussian", Function::RandomGaussian, 3..=3),
    ("random_zipfian", Function::RandomZipfian, 3..=3),
    ("sqrt", Function::Sqrt, 1..=1),
];

pub fn find(name: &str) -> Option<(Function, RangeInclusive<usize>)> {
    FUNCTIONS
        .iter()
        .find(|(known, ..)| known.eq_ignore_ascii_case(name))
        .map(|(_, function, arity)| (*function, arity.clone()))
}

pub fn names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.iter().map(|(name, ..)| *name)
}

impl Function {
    /// Whether the last argument is an optional seed, with the default `:default_seed`.
    pub fn is_seeded(self) -> bool {
        matches!(self, Function::HashFnv1a | Function::HashMurmur2 | Function::Permute)
    }

    /// Whether the function always returns the same result for the same arguments, and has no other effect.
    pub fn is_pure(self) -> bool {
        use Function::*;
        !matches!(self, Debug | Random | RandomExponential | RandomGaussian | RandomZipfian)
    }
}

/// Calls any function except `debug`. The number of `arguments` must match the function.
pub fn call(function: Function, arguments: &[Value], random: &mut Random) -> Result<Value, EvalError> {
    use Function::*;
    if arguments.iter().any(|value| matches!(value, Value::Null)) {
        return Ok(Value::Null);
    }
    Ok(match function {
        Random => random_integer(arguments[0], arguments[1], random)?,
        RandomExponential | RandomGaussian | RandomZipfian => draw(function, arguments, random)?,
        Abs => match arguments[0] {
            Value::Integer(integer) => Value::Integer(integer.wrapping_abs()),
            other => Value::Double(other.to_double()?.abs()),
        },
        Debug => arguments[0],
        Double => Value::Double(arguments[0].to_double()?),
        Exp => Value::Double(arguments[0].to_double()?.exp()),
        Ln => Value::Double(arguments[0].to_double()?.ln()),
        Sqrt => Value::Double(arguments[0].to_double()?.sqrt()),
        Int => Value::Integer(arguments[0].to_integer()?),
        Pi => Value::Double(std::f64::consts::PI),
        Power => Value::Double(arguments[0].to_double()?.powf(arguments[1].to_double()?)),
        Mod => super::operators::apply(super::operators::Operator::Modulo, arguments[0], arguments[1])?,
        Least => extreme(arguments, false)?,
        Greatest => extreme(arguments, true)?,
        HashFnv1a => Value::Integer(hash::fnv1a(arguments[0].to_integer()?, arguments[1].to_integer()?)),
        HashMurmur2 => Value::Integer(hash::murmur2(arguments[0].to_integer()?, arguments[1].to_integer()?)),
        Permute => {
            let (value, size) = (arguments[0].to_integer()?, arguments[1].to_integer()?);
            let seed = arguments[2].to_integer()?;
            if size <= 0 {
                return Err(EvalError::new("permute size parameter must be greater than zero"));
            }
            Value::Integer(permute(value, size, seed))
        }
    })
}

/// Returns the least or the greatest argument. If an argument is a double, the result is a double.
fn extreme(arguments: &[Value], greatest: bool) -> Result<Value, EvalError> {
    if arguments.iter().any(|value| matches!(value, Value::Double(_))) {
        let mut best = arguments[0].to_double()?;
        for next in &arguments[1..] {
            let next = next.to_double()?;
            // Comparisons with NaN are false, so the order of the operands matters. The order is the same as in
            // pgbench's C macros.
            let keep = if greatest { best > next } else { best < next };
            best = if keep { best } else { next };
        }
        return Ok(Value::Double(best));
    }
    let mut best = arguments[0].to_integer()?;
    for next in &arguments[1..] {
        let next = next.to_integer()?;
        best = if greatest { best.max(next) } else { best.min(next) };
    }
    Ok(Value::Integer(best))
}

#[inline]
pub fn random_integer(min: Value, max: Value, random: &mut Random) -> Result<Value, EvalError> {
    if matches!(min, Value::Null) || matches!(max, Value::Null) {
        return Ok(Value::Null);
    }
    let (min, max) = bounds(min, max)?;
    Ok(Value::Integer(random.integer(min, max)))
}

#[inline]
fn bounds(min: Value, max: Value) -> Result<(i64, i64), EvalError> {
    let (min, max) = (min.to_integer()?, max.to_integer()?);
    if min > max {
        return Err(EvalError::new("empty range given to random"));
    }
    if max.checked_sub(min).and_then(|width| width.checked_add(1)).is_none() {
        return Err(EvalError::new("random range is too large"));
    }
    Ok((min, max))
}

fn draw(function: Function, arguments: &[Value], random: &mut Random) -> Result<Value, EvalError> {
    let (min, max) = bounds(arguments[0], arguments[1])?;
    let parameter = arguments[2].to_double()?;
    let refuse = |rule: &str| Err(EvalError::new(format!("{rule} (not {parameter:.6})")));
    Ok(Value::Integer(match function {
        Function::RandomGaussian if parameter.is_nan() || parameter < 2.0 => {
            return refuse("gaussian parameter must be at least 2.000000");
        }
        Function::RandomGaussian => random.gaussian(min, max, parameter),
        Function::RandomZipfian if !(1.001..=1000.0).contains(&parameter) => {
            return refuse("zipfian parameter must be in range [1.001, 1000]");
        }
        Function::RandomZipfian => random.zipfian(min, max, parameter),
        _ if parameter.is_nan() || parameter <= 0.0 => {
            return refuse("exponential parameter must be greater than zero");
        }
        _ => random.exponential(min, max, parameter),
    }))
}
