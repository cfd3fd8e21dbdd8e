//! The work of one `igen-cpu` thread. The thread computes the same picture repeatedly, and compares the picture's
//! checksum with the expected one.

use ironbench_core::Result;
use serde_json::{Value, json};

use crate::mandelbrot::{self, Variant, View};
use crate::threads::{CompletedUnit, StopCheck, Work};

pub struct Fractal {
    view: View,
    variant: Variant,
    steps: Vec<u32>,
    expected: u64,
    wrong: u64,
}

impl Fractal {
    pub fn new(view: View, variant: Variant) -> Self {
        Self { view, variant, steps: Vec::new(), expected: 0, wrong: 0 }
    }
}

impl Work for Fractal {
    /// Computes the expected checksum with the other variant, so that a fault in one of the two implementations is
    /// noticed.
    fn prepare(&mut self, over: StopCheck<'_>) -> Result<()> {
        self.steps = vec![0; self.view.width * self.view.height];
        let other = match self.variant {
            Variant::Scalar => Variant::Vector,
            Variant::Vector => Variant::Scalar,
        };
        mandelbrot::draw_unless(self.view, other, &mut self.steps, over);
        self.expected = mandelbrot::checksum(&self.steps);
        Ok(())
    }

    fn unit(&mut self, over: StopCheck<'_>) -> Result<Option<CompletedUnit>> {
        // The picture is always the same. This call prevents the optimiser from making use of that.
        let view = std::hint::black_box(self.view);
        if !mandelbrot::draw_unless(view, self.variant, &mut self.steps, over) {
            return Ok(None);
        }
        self.wrong += u64::from(mandelbrot::checksum(&self.steps) != self.expected);
        Ok(Some(CompletedUnit::default()))
    }

    fn report(&mut self) -> Value {
        let steps = mandelbrot::counted(self.view, &self.steps);
        json!({
            "wrong": self.wrong,
            "checksum": format!("{:016x}", self.expected),
            "float_steps": steps.float,
            "integer_steps": steps.integer,
            "operations": (steps.float + steps.integer) * mandelbrot::OPERATIONS_PER_STEP,
            "instructions": match self.variant {
                Variant::Scalar => "scalar",
                Variant::Vector => mandelbrot::instructions(),
            },
        })
    }
}
