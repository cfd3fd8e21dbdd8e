//! Parses expressions from tokens by operator precedence, and evaluates constant parts immediately.
//!
//! Precedence, lowest first: OR; AND; NOT; IS, ISNULL, NOTNULL; comparison; bitwise and shifts; + -; * / %; sign.

use super::expression::{Case, Debug, Expression, evaluate};
use super::functions::{self, Function};
use super::lexer::{Spanned, Token, tokens};
use super::locate::{Fault, nearest};
use super::operators::Operator;
use super::variables::DEFAULT_SEED;
use super::{Random, Slot, Symbols, Value, Variables};

const OR: u8 = 1;
const AND: u8 = 2;
const NOT: u8 = 3;
const IS: u8 = 4;
const COMPARISON: u8 = 5;
const BITWISE: u8 = 6;
const SUM: u8 = 7;
const PRODUCT: u8 = 8;
const SIGN: u8 = 9;

/// Maximum height of an expression. Evaluation and parsing recurse, and with this limit both need much less than the
/// smallest thread stack.
const HIGHEST: usize = 300;

/// The state of the script that an expression uses and extends.
pub struct Context<'a> {
    pub symbols: &'a mut Symbols,
    pub read: &'a mut Vec<Read>,
    /// Whether the whole expression is evaluated in every run of the script.
    pub certain: bool,
    /// Number of the script (from 0), for `debug`.
    pub script: usize,
    pub command: usize,
}

/// A variable that an expression or `\sleep` reads.
#[derive(Debug, Clone, Copy)]
pub struct Read {
    pub slot: Slot,
    pub offset: usize,
    /// Whether every run of the script reads the variable. This is not the case inside `\if`, `and`, `or` and `when`.
    pub certain: bool,
}

/// Parses the expression at `at`. Also returns the offset of the end of its line.
pub fn parse(text: &str, at: usize, context: Context<'_>) -> Result<(Expression, usize), Fault> {
    let tokens = tokens(text, at)?;
    let mut parser = Parser { text, tokens, next: 0, depth: 0, lazy: 0, context, empty: Variables::empty() };
    let node = parser.expression(0)?;
    match parser.peek() {
        Spanned { token: Token::End, offset } => Ok((node.expression, offset)),
        found => Err(parser.unexpected(found)),
    }
}

struct Node {
    expression: Expression,
    height: usize,
    /// Whether the expression reads no variable and calls only pure functions.
    constant: bool,
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Spanned<'a>>,
    next: usize,
    depth: usize,
    /// Number of enclosing parts of the expression that may be skipped in the evaluation.
    lazy: usize,
    context: Context<'a>,
    /// An empty set of variables, for evaluating constants.
    empty: Variables,
}

enum Infix {
    Operator(Operator, u8),
    /// An operator whose operands are swapped. For example, `a > b` is evaluated as `b < a`, so `b` is evaluated first.
    /// pgbench uses the same order. The order matters if both operands draw random numbers.
    Swapped(Operator, u8),
    And,
    Or,
    Is,
    IsNull,
    NotNull,
}

impl Infix {
    fn of(token: Token<'_>) -> Option<Self> {
        let Token::Symbol(symbol) = token else { return None };
        Some(match symbol {
            "or" => Infix::Or,
            "and" => Infix::And,
            "is" => Infix::Is,
            "isnull" => Infix::IsNull,
            "notnull" => Infix::NotNull,
            "=" => Infix::Operator(Operator::Equal, COMPARISON),
            "<>" | "!=" => Infix::Operator(Operator::NotEqual, COMPARISON),
            "<" => Infix::Operator(Operator::Less, COMPARISON),
            "<=" => Infix::Operator(Operator::LessOrEqual, COMPARISON),
            ">" => Infix::Swapped(Operator::Less, COMPARISON),
            ">=" => Infix::Swapped(Operator::LessOrEqual, COMPARISON),
            "&" => Infix::Operator(Operator::BitAnd, BITWISE),
            "|" => Infix::Operator(Operator::BitOr, BITWISE),
            "#" => Infix::Operator(Operator::BitXor, BITWISE),
            "<<" => Infix::Operator(Operator::ShiftLeft, BITWISE),
            ">>" => Infix::Operator(Operator::ShiftRight, BITWISE),
            "+" => Infix::Operator(Operator::Add, SUM),
            "-" => Infix::Operator(Operator::Subtract, SUM),
            "*" => Infix::Operator(Operator::Multiply, PRODUCT),
            "/" => Infix::Operator(Operator::Divide, PRODUCT),
            "%" => Infix::Operator(Operator::Modulo, PRODUCT),
            _ => return None,
        })
    }

    fn precedence(&self) -> u8 {
        match self {
            Infix::Or => OR,
            Infix::And => AND,
            Infix::Is | Infix::IsNull | Infix::NotNull => IS,
            Infix::Operator(_, precedence) | Infix::Swapped(_, precedence) => *precedence,
        }
    }
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Spanned<'a> {
        self.tokens[self.next]
    }

    fn take(&mut self) -> Spanned<'a> {
        let taken = self.tokens[self.next];
        if taken.token != Token::End {
            self.next += 1;
        }
        taken
    }

    fn take_symbol(&mut self, symbol: &'static str) -> bool {
        let found = self.peek().token == Token::Symbol(symbol);
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, symbol: &'static str) -> Result<(), Fault> {
        if self.take_symbol(symbol) {
            return Ok(());
        }
        let fault = self.unexpected(self.peek());
        Err(Fault { cause: format!("{}, \"{symbol}\" was expected", fault.cause), ..fault })
    }

    fn unexpected(&self, found: Spanned<'a>) -> Fault {
        let Spanned { token, offset } = found;
        if token == Token::End {
            return Fault::new(offset, "the expression ends too early");
        }
        if token == Token::IntegerLimit {
            return Fault::new(offset, "9223372036854775808 is out of the range of a bigint");
        }
        let rest = self.tokens[self.next..]
            .iter()
            .find(|next| next.offset > offset)
            .map_or(self.text.len(), |next| next.offset);
        let fault =
            Fault::new(offset, format!("unexpected \"{}\" in an expression", self.text[offset..rest].trim_end()));
        match token {
            Token::Name(name) => fault.hint(format!("write :{name} for a variable")),
            _ => fault,
        }
    }

    /// Parses an expression of operators that bind at least as tightly as `lowest`.
    fn expression(&mut self, lowest: u8) -> Result<Node, Fault> {
        self.depth += 1;
        if self.depth > HIGHEST {
            return Err(too_deep(self.peek().offset));
        }
        let mut left = self.operand()?;
        // Comparisons do not chain, so `a < b < c` is an error.
        let mut compared = false;
        while let Some(infix) = Infix::of(self.peek().token) {
            let precedence = infix.precedence();
            if precedence < lowest {
                break;
            }
            let at = self.take();
            if precedence == COMPARISON && compared {
                self.next -= 1;
                return Err(self.unexpected(at).hint("comparisons do not chain; use \"and\""));
            }
            compared = precedence == COMPARISON;
            left = self.infix(left, infix, at.offset)?;
        }
        self.depth -= 1;
        Ok(left)
    }

    fn infix(&mut self, left: Node, infix: Infix, offset: usize) -> Result<Node, Fault> {
        match infix {
            Infix::Is => {
                let negated = self.take_symbol("not");
                let wanted = match self.peek().token {
                    Token::Null => Value::Null,
                    Token::Boolean(boolean) => Value::Boolean(boolean),
                    _ => return Err(self.unexpected(self.peek()).hint("IS is followed by [NOT] NULL, TRUE or FALSE")),
                };
                self.take();
                self.is(left, wanted, negated, offset)
            }
            Infix::IsNull => self.is(left, Value::Null, false, offset),
            Infix::NotNull => self.is(left, Value::Null, true, offset),
            Infix::And | Infix::Or => {
                let right = self.lazily(|parser| parser.expression(infix.precedence() + 1))?;
                self.join(
                    left,
                    right,
                    offset,
                    if matches!(infix, Infix::And) { Expression::And } else { Expression::Or },
                )
            }
            Infix::Operator(operator, precedence) => {
                let right = self.expression(precedence + 1)?;
                self.join(left, right, offset, |operands| Expression::Binary(operator, operands))
            }
            Infix::Swapped(operator, precedence) => {
                let right = self.expression(precedence + 1)?;
                self.join(right, left, offset, |operands| Expression::Binary(operator, operands))
            }
        }
    }

    fn operand(&mut self) -> Result<Node, Fault> {
        let found = self.take();
        match found.token {
            Token::Null => Ok(constant(Value::Null)),
            Token::Boolean(boolean) => Ok(constant(Value::Boolean(boolean))),
            Token::Integer(integer) => Ok(constant(Value::Integer(integer))),
            Token::Double(double) => Ok(constant(Value::Double(double))),
            Token::Variable(name) => Ok(self.variable(name, found.offset)),
            Token::Name(name) => self.call(name, found.offset),
            Token::Symbol("(") => {
                let inner = self.expression(0)?;
                self.expect(")")?;
                Ok(inner)
            }
            Token::Symbol("+") => self.expression(SIGN),
            Token::Symbol("-") if self.peek().token == Token::IntegerLimit => {
                self.take();
                Ok(constant(Value::Integer(i64::MIN)))
            }
            Token::Symbol("-") => {
                let operand = self.expression(SIGN)?;
                let zero = constant(Value::Integer(0));
                self.join(zero, operand, found.offset, |operands| Expression::Binary(Operator::Subtract, operands))
            }
            Token::Symbol("~") => {
                // The operand of `~` extends further than the operand of a minus sign. The operand of `~` includes all
                // operators that bind more tightly than the bitwise ones.
                let operand = self.expression(BITWISE + 1)?;
                let ones = constant(Value::Integer(-1));
                self.join(ones, operand, found.offset, |operands| Expression::Binary(Operator::BitXor, operands))
            }
            Token::Symbol("not") => {
                let operand = self.expression(NOT)?;
                self.wrap(operand, found.offset, |operand| Expression::Not(Box::new(operand)))
            }
            Token::Symbol("case") => self.case(found.offset),
            _ => {
                self.next = self.next.saturating_sub(usize::from(found.token != Token::End));
                Err(self.unexpected(found))
            }
        }
    }

    fn variable(&mut self, name: &str, offset: usize) -> Node {
        let slot = self.context.symbols.slot(name);
        let certain = self.context.certain && self.lazy == 0;
        self.context.read.push(Read { slot, offset, certain });
        Node { expression: Expression::Variable(slot), height: 1, constant: false }
    }

    fn lazily<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T, Fault>) -> Result<T, Fault> {
        self.lazy += 1;
        let parsed = parse(self)?;
        self.lazy -= 1;
        Ok(parsed)
    }

    fn case(&mut self, offset: usize) -> Result<Node, Fault> {
        let mut branches = Vec::new();
        let mut height = 0;
        while self.take_symbol("when") {
            // The first condition is always evaluated. The others are evaluated only if all earlier ones are false.
            let condition =
                if branches.is_empty() { self.expression(0) } else { self.lazily(|parser| parser.expression(0)) }?;
            self.expect("then")?;
            let result = self.lazily(|parser| parser.expression(0))?;
            height = height.max(condition.height).max(result.height);
            branches.push([condition.expression, result.expression]);
        }
        if branches.is_empty() {
            self.expect("when")?;
        }
        let otherwise =
            if self.take_symbol("else") { self.lazily(|parser| parser.expression(0))? } else { constant(Value::Null) };
        self.expect("end")?;
        let height = height.max(otherwise.height) + 1;
        let case = Case { branches, otherwise: otherwise.expression };
        self.made(Node { expression: Expression::Case(Box::new(case)), height, constant: false }, offset)
    }

    fn call(&mut self, name: &str, offset: usize) -> Result<Node, Fault> {
        if self.peek().token != Token::Symbol("(") {
            self.next -= 1;
            return Err(self.unexpected(Spanned { token: Token::Name(name), offset }));
        }
        let Some((function, arity)) = functions::find(name) else {
            let hint = nearest(name, functions::names());
            return Err(Fault::new(offset, format!("unknown function \"{name}\"")).hint(hint));
        };
        self.take();
        let mut arguments = Vec::new();
        if !self.take_symbol(")") {
            loop {
                arguments.push(self.expression(0)?);
                if !self.take_symbol(",") {
                    break;
                }
            }
            self.expect(")")?;
        }
        if !arity.contains(&arguments.len()) {
            let wanted = match (arity.start(), arity.end()) {
                (least, most) if least == most => format!("{least}"),
                (least, most) => format!("{least} to {most}"),
            };
            let cause = format!("function \"{name}\" takes {wanted} arguments, not {}", arguments.len());
            return Err(Fault::new(offset, cause));
        }
        if function.is_seeded() && arguments.len() < *arity.end() {
            arguments.push(Node { expression: Expression::Variable(DEFAULT_SEED), height: 1, constant: false });
        }
        let height = arguments.iter().map(|argument| argument.height).max().unwrap_or(0) + 1;
        let constant = function.is_pure() && arguments.iter().all(|argument| argument.constant);
        let mut expressions = arguments.into_iter().map(|argument| argument.expression);
        let expression = match (function, expressions.next()) {
            (Function::Debug, Some(argument)) => {
                let Context { script, command, .. } = self.context;
                Expression::Debug(Box::new(Debug { script, command, argument }))
            }
            (_, first) => Expression::Call(function, first.into_iter().chain(expressions).collect()),
        };
        self.made(Node { expression, height, constant }, offset)
    }

    fn is(&mut self, operand: Node, wanted: Value, negated: bool, offset: usize) -> Result<Node, Fault> {
        let node = self.wrap(operand, offset, |operand| Expression::Is(Box::new(operand), wanted))?;
        if negated { self.wrap(node, offset, |operand| Expression::Not(Box::new(operand))) } else { Ok(node) }
    }

    fn wrap(&mut self, operand: Node, offset: usize, make: impl Fn(Expression) -> Expression) -> Result<Node, Fault> {
        let Node { expression, height, constant } = operand;
        self.made(Node { expression: make(expression), height: height + 1, constant }, offset)
    }

    fn join(
        &mut self,
        left: Node,
        right: Node,
        offset: usize,
        make: impl Fn(Box<[Expression; 2]>) -> Expression,
    ) -> Result<Node, Fault> {
        let height = left.height.max(right.height) + 1;
        let constant = left.constant && right.constant;
        self.made(Node { expression: make(Box::new([left.expression, right.expression])), height, constant }, offset)
    }

    /// Replaces a constant expression by its value. If the evaluation fails, as for `1 / 0`, the expression is kept. It
    /// then fails only if a transaction reaches it.
    fn made(&mut self, node: Node, offset: usize) -> Result<Node, Fault> {
        if node.height > HIGHEST {
            return Err(too_deep(offset));
        }
        if node.constant
            && let Ok(value) = evaluate(&node.expression, &mut self.empty, &mut Random::new(0))
        {
            return Ok(constant(value));
        }
        Ok(node)
    }
}

fn constant(value: Value) -> Node {
    Node { expression: Expression::Constant(value), height: 1, constant: true }
}

fn too_deep(offset: usize) -> Fault {
    Fault::new(offset, format!("the expression is nested more than {HIGHEST} deep"))
        .hint("compute parts of it with separate \\set commands")
}
