//! Names of the variables through which a transaction gets its inputs.

use crate::input_variables::{Name, names};

names! {
    #[expect(dead_code, reason = "variables of lines are found by their place, see `OfLine`")]
    Input:
    Amount "amount"
    ByName "by_name"
    Carrier "carrier"
    CDId "c_d_id"
    CId "c_id"
    CLast "c_last"
    CWId "c_w_id"
    Delivered "delivered"
    Different "different"
    DId "d_id"
    Items "items"
    Lines "lines"
    Local "local"
    OrderLines "order_lines"
    Quantities "quantities"
    Suppliers "suppliers"
    Threshold "threshold"
    WId "w_id"
    I1 "i1" S1 "s1" Q1 "q1"
    I2 "i2" S2 "s2" Q2 "q2"
    I3 "i3" S3 "s3" Q3 "q3"
    I4 "i4" S4 "s4" Q4 "q4"
    I5 "i5" S5 "s5" Q5 "q5"
    I6 "i6" S6 "s6" Q6 "q6"
    I7 "i7" S7 "s7" Q7 "q7"
    I8 "i8" S8 "s8" Q8 "q8"
    I9 "i9" S9 "s9" Q9 "q9"
    I10 "i10" S10 "s10" Q10 "q10"
    I11 "i11" S11 "s11" Q11 "q11"
    I12 "i12" S12 "s12" Q12 "q12"
    I13 "i13" S13 "s13" Q13 "q13"
    I14 "i14" S14 "s14" Q14 "q14"
    I15 "i15" S15 "s15" Q15 "q15"
}

/// A value of an order line.
#[derive(Debug, Clone, Copy)]
pub enum LineField {
    Item,
    Supplier,
    Quantity,
}

/// A variable of the line with this index, from 0.
#[derive(Debug, Clone, Copy)]
pub struct LineVariable(pub usize, pub LineField);

impl Name for LineVariable {
    const ALL: &'static [&'static str] = Input::ALL;

    fn index(self) -> usize {
        let Self(line, of) = self;
        Input::I1 as usize + 3 * line + of as usize
    }
}
