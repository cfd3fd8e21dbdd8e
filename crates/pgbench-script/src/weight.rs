//! Parses `FILE@WEIGHT`, as on pgbench's command line.

use crate::{Error, Result};

/// Splits `FILE[@WEIGHT]`. The weight is 1 by default.
pub fn parse_weighted(text: &str) -> Result<(&str, u32)> {
    let Some((file, weight)) = text.rsplit_once('@') else {
        return Ok((text, 1));
    };
    match weight.parse::<i32>() {
        Ok(weight) if weight >= 0 => Ok((file, weight.unsigned_abs())),
        _ => Err(Error::new(format!("script \"{text}\""), format!("\"{weight}\" is not a weight"))
            .hint(format!("a weight is an integer from 0 to {}; a file name with @ needs one: {text}@1", i32::MAX))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weight_is_behind_the_last_at_sign() {
        assert_eq!(parse_weighted("a.sql"), Ok(("a.sql", 1)));
        assert_eq!(parse_weighted("a.sql@0"), Ok(("a.sql", 0)));
        assert_eq!(parse_weighted("me@home/a.sql@25"), Ok(("me@home/a.sql", 25)));
        for wrong in ["a@", "a@b", "a@-1", "a@2147483648", "a@1.5"] {
            assert!(parse_weighted(wrong).is_err(), "{wrong}");
        }
    }
}
