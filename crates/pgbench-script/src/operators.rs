//! Operators on values, with pgbench's types, overflow checks and messages.

use super::Value;
use super::expression::EvalError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
}

impl Value {
    /// Whether `\if` and `CASE WHEN` treat the value as true. Such values are true itself and all numbers except 0.
    #[inline]
    pub fn is_true(self) -> bool {
        match self {
            Value::Null => false,
            Value::Boolean(boolean) => boolean,
            Value::Integer(integer) => integer != 0,
            Value::Double(double) => double != 0.0,
        }
    }

    pub fn type_name(self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Boolean(_) => "boolean",
            Value::Integer(_) => "int",
            Value::Double(_) => "double",
        }
    }

    #[inline]
    pub(super) fn to_integer(self) -> Result<i64, EvalError> {
        match self {
            Value::Integer(integer) => Ok(integer),
            Value::Double(double) => round_to_integer(double),
            _ => Err(cannot_coerce(self, "int")),
        }
    }

    #[inline]
    pub(super) fn to_double(self) -> Result<f64, EvalError> {
        match self {
            Value::Double(double) => Ok(double),
            Value::Integer(integer) => Ok(integer as f64),
            _ => Err(cannot_coerce(self, "double")),
        }
    }

    #[inline]
    pub(super) fn to_boolean(self) -> Result<bool, EvalError> {
        match self {
            Value::Boolean(boolean) => Ok(boolean),
            _ => Err(cannot_coerce(self, "boolean")),
        }
    }
}

#[cold]
fn cannot_coerce(value: Value, wanted: &str) -> EvalError {
    EvalError::new(format!("cannot coerce {} to {wanted}", value.type_name()))
}

/// Rounds to the nearest integer, and halves to the even one, like C's `rint`.
fn round_to_integer(double: f64) -> Result<i64, EvalError> {
    // The comparison with the upper limit is strict, because the double closest to 2^63 - 1 is 2^63, which is out of
    // range.
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    let rounded = double.round_ties_even();
    if (-LIMIT..LIMIT).contains(&rounded) {
        Ok(rounded as i64)
    } else {
        Err(EvalError::new(format!("double to int overflow for {double:.6}")))
    }
}

/// Applies an operator. The result is null if an operand is null.
#[inline]
pub fn apply(operator: Operator, left: Value, right: Value) -> Result<Value, EvalError> {
    use Operator::*;
    match (left, right) {
        (Value::Integer(left), Value::Integer(right)) => on_integers(operator, left, right),
        (Value::Null, _) | (_, Value::Null) => Ok(Value::Null),
        (Value::Double(_), _) | (_, Value::Double(_))
            if !matches!(operator, Modulo | BitAnd | BitOr | BitXor | ShiftLeft | ShiftRight) =>
        {
            on_doubles(operator, left.to_double()?, right.to_double()?)
        }
        _ => on_integers(operator, left.to_integer()?, right.to_integer()?),
    }
}

#[inline]
fn on_integers(operator: Operator, left: i64, right: i64) -> Result<Value, EvalError> {
    use Operator::*;
    let result = match operator {
        Add => left.checked_add(right).ok_or("bigint add out of range"),
        Subtract => left.checked_sub(right).ok_or("bigint sub out of range"),
        Multiply => left.checked_mul(right).ok_or("bigint mul out of range"),
        Divide | Modulo if right == 0 => Err("division by zero"),
        Divide => left.checked_div(right).ok_or("bigint div out of range"),
        Modulo => Ok(left.wrapping_rem(right)),
        BitAnd => Ok(left & right),
        BitOr => Ok(left | right),
        BitXor => Ok(left ^ right),
        // As in the processor's instruction, only the lowest six bits of the right operand count.
        ShiftLeft => Ok(left.wrapping_shl(right as u32)),
        ShiftRight => Ok(left.wrapping_shr(right as u32)),
        Equal => return Ok(Value::Boolean(left == right)),
        NotEqual => return Ok(Value::Boolean(left != right)),
        Less => return Ok(Value::Boolean(left < right)),
        LessOrEqual => return Ok(Value::Boolean(left <= right)),
    };
    result.map(Value::Integer).map_err(EvalError::new)
}

/// Applies an operator to doubles. As in pgbench, division by zero gives infinity or NaN.
fn on_doubles(operator: Operator, left: f64, right: f64) -> Result<Value, EvalError> {
    use Operator::*;
    Ok(match operator {
        Add => Value::Double(left + right),
        Subtract => Value::Double(left - right),
        Multiply => Value::Double(left * right),
        Divide => Value::Double(left / right),
        Equal => Value::Boolean(left == right),
        NotEqual => Value::Boolean(left != right),
        Less => Value::Boolean(left < right),
        LessOrEqual => Value::Boolean(left <= right),
        Modulo | BitAnd | BitOr | BitXor | ShiftLeft | ShiftRight => unreachable!("integers only"),
    })
}
