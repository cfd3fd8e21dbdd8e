//! Compiled expressions and their evaluation. The evaluation allocates no memory unless it fails.

use super::functions::{self, Function, MAX_ARGUMENTS};
use super::operators::{Operator, apply};
use super::{Random, Slot, Value, Variables};
use std::fmt;

/// An expression as a tree. The parser limits its height, so that evaluation can recurse.
#[derive(Debug, Clone)]
pub enum Expression {
    Constant(Value),
    Variable(Slot),
    Binary(Operator, Box<[Expression; 2]>),
    Not(Box<Expression>),
    And(Box<[Expression; 2]>),
    Or(Box<[Expression; 2]>),
    /// The operators `IS NULL`, `IS TRUE` and `IS FALSE`, which compare type and value.
    Is(Box<Expression>, Value),
    Case(Box<Case>),
    Call(Function, Box<[Expression]>),
    Debug(Box<Debug>),
}

#[derive(Debug, Clone)]
pub struct Case {
    /// Pairs of condition and result.
    pub branches: Vec<[Expression; 2]>,
    pub otherwise: Expression,
}

/// The function `debug(argument)`, with the script and command numbers that pgbench prints.
#[derive(Debug, Clone)]
pub struct Debug {
    pub script: usize,
    /// Number of the command, from 1.
    pub command: usize,
    pub argument: Expression,
}

/// The reason why an expression could not be evaluated, in pgbench's words. The reason is a single pointer, so that a
/// `Result` with it is returned in registers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvalError(Box<Box<str>>);

impl EvalError {
    #[cold]
    pub fn new(cause: impl Into<Box<str>>) -> Self {
        Self(Box::new(cause.into()))
    }
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for EvalError {}

/// Evaluates an expression for one client.
pub fn evaluate(expression: &Expression, variables: &mut Variables, random: &mut Random) -> Result<Value, EvalError> {
    match expression {
        Expression::Constant(value) => Ok(*value),
        Expression::Variable(slot) => variables.value(*slot),
        Expression::Binary(operator, operands) => {
            let left = operand(&operands[0], variables, random)?;
            let right = operand(&operands[1], variables, random)?;
            apply(*operator, left, right)
        }
        // Nearly every script calls this function in every transaction.
        Expression::Call(Function::Random, bounds) => {
            let min = operand(&bounds[0], variables, random)?;
            let max = operand(&bounds[1], variables, random)?;
            functions::random_integer(min, max, random)
        }
        Expression::Call(function, arguments) => call(*function, arguments, variables, random),
        Expression::Not(operand) => match evaluate(operand, variables, random)? {
            Value::Null => Ok(Value::Null),
            value => Ok(Value::Boolean(!value.to_boolean()?)),
        },
        Expression::And(operands) => connect(operands, false, variables, random),
        Expression::Or(operands) => connect(operands, true, variables, random),
        Expression::Is(operand, wanted) => Ok(Value::Boolean(evaluate(operand, variables, random)? == *wanted)),
        Expression::Case(case) => {
            for [condition, result] in &case.branches {
                if evaluate(condition, variables, random)?.is_true() {
                    return evaluate(result, variables, random);
                }
            }
            evaluate(&case.otherwise, variables, random)
        }
        Expression::Debug(debug) => {
            let value = evaluate(&debug.argument, variables, random)?;
            variables.show_debug(debug.script, debug.command, value);
            Ok(value)
        }
    }
}

/// Evaluates AND (`decisive` is false) or OR (`decisive` is true), from left to right. If the left operand is null, the
/// result is always null, as in pgbench. In SQL, the result would depend on the right operand.
fn connect(
    operands: &[Expression; 2],
    decisive: bool,
    variables: &mut Variables,
    random: &mut Random,
) -> Result<Value, EvalError> {
    for operand in operands {
        match evaluate(operand, variables, random)? {
            Value::Null => return Ok(Value::Null),
            value if value.to_boolean()? == decisive => return Ok(Value::Boolean(decisive)),
            _ => {}
        }
    }
    Ok(Value::Boolean(!decisive))
}

/// Evaluates an operand. Most operands are constants or variables, so they are handled here without another call.
#[inline(always)]
fn operand(expression: &Expression, variables: &mut Variables, random: &mut Random) -> Result<Value, EvalError> {
    match expression {
        Expression::Constant(value) => Ok(*value),
        Expression::Variable(slot) => variables.value(*slot),
        _ => evaluate(expression, variables, random),
    }
}

#[inline(never)]
fn call(
    function: Function,
    arguments: &[Expression],
    variables: &mut Variables,
    random: &mut Random,
) -> Result<Value, EvalError> {
    let mut values = [Value::Null; 3];
    if arguments.len() > values.len() {
        return call_many(function, arguments, variables, random);
    }
    for (value, argument) in values.iter_mut().zip(arguments) {
        *value = operand(argument, variables, random)?;
    }
    functions::call(function, &values[..arguments.len()], random)
}

#[inline(never)]
fn call_many(
    function: Function,
    arguments: &[Expression],
    variables: &mut Variables,
    random: &mut Random,
) -> Result<Value, EvalError> {
    let mut values = [Value::Null; MAX_ARGUMENTS];
    for (value, argument) in values.iter_mut().zip(arguments) {
        *value = evaluate(argument, variables, random)?;
    }
    functions::call(function, &values[..arguments.len()], random)
}
