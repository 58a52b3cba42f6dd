//! Arithmetic in parentheses: `(4*1k)`, `((2+3)*8k-1m/4)`, with `+ - * / % ^` and unary minus.
//!
//! Values are exact fractions, so `(1m/3*3)` is 1 MiB; the result must be a whole number.

use crate::number::Number;
use crate::problem::{Piece, Problem};

/// Reads one number with its unit.
pub(crate) type Literal<'a> = &'a dyn Fn(Piece<'_>) -> Result<Number, Problem>;

/// Evaluates an expression in parentheses. Also returns whether any number in it had a unit.
pub(crate) fn evaluate(piece: Piece<'_>, literal: Literal<'_>) -> Result<(i128, bool), Problem> {
    let mut reader = Reader::new(piece, literal);
    let (value, unit) = reader.expression()?;
    if value.below == 1 {
        return Ok((value.above, unit));
    }
    Err(Problem::new(
        "not-whole",
        piece.range(),
        format!("`{}` is not a whole number", piece.text),
    )
    .fix("use a division without remainder"))
}

/// Evaluates an expression of plain numbers with integer division, as `bc` does. Returns `None` if
/// it is no such expression.
pub(crate) fn calculate(text: &str) -> Option<i128> {
    let literal = |piece: Piece<'_>| {
        let value = piece
            .text
            .parse()
            .map_err(|_| Problem::new("not-a-number", piece.range(), "not a plain number"))?;
        Ok(Number {
            value,
            unit: false,
            reversed: false,
        })
    };
    let mut reader = Reader::new(Piece::new(text), &literal);
    reader.cut = true;
    reader.expression().ok().map(|(value, _)| value.above)
}

/// A fraction in its lowest terms; `below` is at least 1.
#[derive(Clone, Copy)]
struct Ratio {
    above: i128,
    below: i128,
}

impl Ratio {
    const fn from_integer(value: i128) -> Self {
        Self {
            above: value,
            below: 1,
        }
    }

    fn new(above: i128, below: i128) -> Option<Self> {
        let common = common_divisor(above.checked_abs()?, below.checked_abs()?);
        if below == 0 || common == 0 {
            return None;
        }
        let sign = below.signum();
        Some(Self {
            above: above / common * sign,
            below: below / common * sign,
        })
    }

    fn plus(self, other: Self) -> Option<Self> {
        let left = self.above.checked_mul(other.below)?;
        let right = other.above.checked_mul(self.below)?;
        Self::new(
            left.checked_add(right)?,
            self.below.checked_mul(other.below)?,
        )
    }

    fn times(self, other: Self) -> Option<Self> {
        Self::new(
            self.above.checked_mul(other.above)?,
            self.below.checked_mul(other.below)?,
        )
    }

    fn over(self, other: Self) -> Option<Self> {
        Self::new(
            self.above.checked_mul(other.below)?,
            self.below.checked_mul(other.above)?,
        )
    }

    fn power(self, exponent: Self) -> Option<Self> {
        if exponent.below != 1 {
            return None;
        }
        let times = u32::try_from(exponent.above).ok()?;
        Self::new(
            self.above.checked_pow(times)?,
            self.below.checked_pow(times)?,
        )
    }
}

fn common_divisor(mut a: i128, mut b: i128) -> i128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

struct Reader<'a> {
    piece: Piece<'a>,
    literal: Literal<'a>,
    at: usize,
    depth: u32,
    /// Integer division.
    cut: bool,
    unit: bool,
}

impl<'a> Reader<'a> {
    const fn new(piece: Piece<'a>, literal: Literal<'a>) -> Self {
        Self {
            piece,
            literal,
            at: 0,
            depth: 0,
            cut: false,
            unit: false,
        }
    }

    fn expression(&mut self) -> Result<(Ratio, bool), Problem> {
        let value = self.sum()?;
        match self.peek() {
            None => Ok((value, self.unit)),
            Some(_) => Err(self.problem("expected an operator (+ - * / % ^) or the end")),
        }
    }

    fn sum(&mut self) -> Result<Ratio, Problem> {
        let mut left = self.product()?;
        while let Some(operator @ (b'+' | b'-')) = self.peek() {
            let at = self.at;
            self.at += 1;
            let mut right = self.product()?;
            if operator == b'-' {
                right.above = -right.above;
            }
            left = self.checked(at, left.plus(right))?;
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Ratio, Problem> {
        let mut left = self.signed()?;
        while let Some(operator @ (b'*' | b'/' | b'%')) = self.peek() {
            let at = self.at;
            self.at += 1;
            let right = self.signed()?;
            if operator != b'*' && right.above == 0 {
                self.at = at;
                return Err(self.problem("division by zero"));
            }
            let result = match operator {
                b'*' => left.times(right),
                b'/' => left.over(right).map(|value| self.truncated(value)),
                _ => remainder(left, right),
            };
            left = self.checked(at, result)?;
        }
        Ok(left)
    }

    /// Returns the quotient, truncated if requested.
    const fn truncated(&self, value: Ratio) -> Ratio {
        if self.cut {
            Ratio::from_integer(value.above / value.below)
        } else {
            value
        }
    }

    fn signed(&mut self) -> Result<Ratio, Problem> {
        let mut minus = false;
        while let Some(sign @ (b'-' | b'+')) = self.peek() {
            minus ^= sign == b'-';
            self.at += 1;
        }
        let mut value = self.power()?;
        if minus {
            value.above = -value.above;
        }
        Ok(value)
    }

    fn power(&mut self) -> Result<Ratio, Problem> {
        let base = self.atom()?;
        if self.peek() != Some(b'^') {
            return Ok(base);
        }
        let at = self.at;
        self.at += 1;
        self.deeper()?;
        let exponent = self.signed()?;
        self.depth -= 1;
        self.checked(at, base.power(exponent))
    }

    fn atom(&mut self) -> Result<Ratio, Problem> {
        match self.peek() {
            Some(b'(') => {
                self.deeper()?;
                self.at += 1;
                let value = self.sum()?;
                if self.peek() != Some(b')') {
                    return Err(self.problem("expected `)`"));
                }
                self.at += 1;
                self.depth -= 1;
                Ok(value)
            }
            Some(letter) if letter.is_ascii_alphanumeric() => self.number(),
            _ => Err(self.problem("expected a number or `(`")),
        }
    }

    fn number(&mut self) -> Result<Ratio, Problem> {
        let rest = &self.piece.text[self.at..];
        let length = rest
            .find(|letter: char| !(letter.is_alphanumeric() || letter == '.'))
            .unwrap_or(rest.len());
        let number = (self.literal)(self.piece.part(self.at..self.at + length))?;
        self.at += length;
        self.unit |= number.unit;
        Ok(Ratio::from_integer(number.value))
    }

    fn deeper(&mut self) -> Result<(), Problem> {
        self.depth += 1;
        if self.depth > NESTING_MAX {
            return Err(self.problem("parentheses are nested too deeply"));
        }
        Ok(())
    }

    /// Returns the next byte that is not a space.
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.piece.text.as_bytes();
        while bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    fn checked(&self, at: usize, value: Option<Ratio>) -> Result<Ratio, Problem> {
        value.ok_or_else(|| {
            Problem::new(
                "overflow",
                self.piece.at + at..self.piece.at + at + 1,
                "the result overflows",
            )
        })
    }

    fn problem(&self, why: &str) -> Problem {
        let rest = &self.piece.text[self.at..];
        let length = rest.chars().next().map_or(0, char::len_utf8);
        let start = self.piece.at + self.at;
        Problem::new("bad-expression", start..start + length, why)
            .fix("write a complete expression, such as `(4*1k)`")
    }
}

fn remainder(left: Ratio, right: Ratio) -> Option<Ratio> {
    if left.below != 1 || right.below != 1 {
        return None;
    }
    left.above.checked_rem(right.above).map(Ratio::from_integer)
}

/// Limit of nesting: each level costs stack, and job files written by hand stay far below.
const NESTING_MAX: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::integer;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, want: Result<i128, &str>) {
        let got = integer(Piece::new(text), 1024).map(|number| number.value);
        assert_eq!(got.map_err(|problem| problem.code), want, "{text}");
    }

    #[test]
    fn expressions_have_the_usual_order() {
        check("(2+3*4)", Ok(14));
        check("((2+3)*4)", Ok(20));
        check("(10-4-3)", Ok(3));
        check("(2^3^2)", Ok(512));
        check("(-2^2)", Ok(-4));
        check("(7%4)", Ok(3));
        check("(1m/3*3)", Ok(1 << 20));
        check("(4 * 1k)", Ok(4096));
        check("(4k)*2", Ok(8192));
        check("(2--3)", Ok(5));
    }

    #[test]
    fn a_bad_expression_is_refused_where_it_is_bad() {
        check("(10k/3)", Err("not-whole"));
        check("(1/0)", Err("bad-expression"));
        check("(1%0)", Err("bad-expression"));
        check("(1+", Err("bad-expression"));
        check("()", Err("bad-expression"));
        check("(1 2)", Err("bad-expression"));
        check("(2^-1)", Err("overflow"));
        check("(9999999999p)", Err("overflow"));
        check("(10^40)", Err("overflow"));
        check("(1.5k*2)", Err("fraction"));
        check("(4*é)", Err("bad-expression"));
    }

    #[test]
    fn nesting_has_a_limit() {
        let text = format!("{}1{}", "(".repeat(100_000), ")".repeat(100_000));
        check(&text, Err("bad-expression"));
        let text = format!("(2{})", "^1".repeat(100_000));
        check(&text, Err("bad-expression"));
    }

    #[test]
    fn bc_cuts_quotients() {
        assert_eq!(calculate("7/2*2"), Some(6));
        assert_eq!(calculate("4*4096"), Some(16384));
        assert_eq!(calculate("4k*2"), None);
    }

    proptest! {
        #[test]
        fn sums_and_products_agree_with_the_machine(
            a in -1000_i128..1000,
            b in -1000_i128..1000,
            c in 1_i128..50,
        ) {
            check(&format!("({a}+{b}*{c}-({a}-{c}))"), Ok(a + b * c - (a - c)));
        }

        #[test]
        fn any_expression_is_read_or_refused(text in "[(][-+*/%^0-9kmg() .]{0,24}") {
            let _ = integer(Piece::new(&text), 1024);
        }
    }
}
