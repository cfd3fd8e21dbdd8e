use super::*;

const VIEW: View = View { width: 321, height: 200, limit: 256 };

fn picture(variant: Variant) -> Vec<u32> {
    let mut steps = vec![0; VIEW.width * VIEW.height];
    draw(VIEW, variant, &mut steps);
    steps
}

#[test]
fn both_variants_draw_the_same_picture() {
    assert_eq!(picture(Variant::Scalar), picture(Variant::Vector));
}

#[test]
fn a_picture_in_pieces_is_the_same() {
    let view = View { width: 20, height: 8, limit: 300_000 };
    assert!(Looks::new(view.limit, &|| false).apart < view.width);
    let (mut scalar, mut vector) = (vec![0; 160], vec![0; 160]);
    draw(view, Variant::Scalar, &mut scalar);
    draw(view, Variant::Vector, &mut vector);
    assert_eq!(scalar, vector);
    let at = |row: usize, column: usize| escape(Complex::<f64>::from_f64(view.re(column), view.im(row)), view.limit);
    for column in 0..view.width {
        assert_eq!(scalar[4 * view.width + column], at(4, column), "column {column}");
    }
}

#[test]
fn a_picture_is_given_up_when_the_work_is_over() {
    let view = View { width: 20_000, height: 100, limit: 1_000_000 };
    let mut steps = vec![0; view.width * view.height];
    for variant in [Variant::Scalar, Variant::Vector] {
        let asked = std::cell::Cell::new(0);
        let over = || {
            asked.set(asked.get() + 1);
            asked.get() == 3
        };
        assert!(!draw_unless(view, variant, &mut steps, &over));
    }
}

#[test]
fn a_common_picture_asks_a_few_times_and_a_long_one_often() {
    let asked = |view: View| {
        let count = std::cell::Cell::new(0);
        let mut steps = vec![0; view.width * view.height];
        draw_unless(view, Variant::Scalar, &mut steps, &|| {
            count.set(count.get() + 1);
            false
        });
        count.get()
    };
    assert!((5..20).contains(&asked(View { width: 480, height: 320, limit: 256 })));
    assert_eq!(asked(View { width: 16, height: 4, limit: 1_000_000 }), 8);
}

#[test]
fn the_picture_is_the_set() {
    let steps = picture(Variant::Scalar);
    let at = |re: f64, im: f64| {
        let column = ((re - LEFT) / (RIGHT - LEFT) * VIEW.width as f64) as usize;
        let row = ((UPPER - im) / (UPPER - LOWER) * VIEW.height as f64) as usize;
        steps[row * VIEW.width + column]
    };
    for inside in [(-0.5, 0.1), (-1.0, 0.05), (0.1, 0.2), (-1.3, 0.01)] {
        assert_eq!(at(inside.0, inside.1), VIEW.limit, "{inside:?}");
    }
    for outside in [(0.9, 0.9), (-1.9, 0.8), (0.5, -0.5)] {
        assert!(at(outside.0, outside.1) < 10, "{outside:?}");
    }
}

#[test]
fn every_point_agrees_with_a_plain_loop_over_doubles() {
    let steps = picture(Variant::Vector);
    let mut differing = 0;
    for row in 0..VIEW.height {
        for column in 0..VIEW.width {
            let (c_re, c_im) = (VIEW.re(column), VIEW.im(row));
            let (mut re, mut im, mut count) = (0.0_f64, 0.0_f64, 0);
            while count < VIEW.limit && re * re + im * im <= 4.0 {
                (re, im) = (re * re - im * im + c_re, re * im + re * im + c_im);
                count += 1;
            }
            let found = steps[row * VIEW.width + column];
            if is_float(row) {
                assert_eq!(found, count, "row {row} column {column}");
            } else {
                // Results with 28 and 52 fraction bits differ where an orbit is chaotic, right at the edge of the set.
                differing += usize::from(found != count);
            }
        }
    }
    assert!(differing < VIEW.width * VIEW.height / 20, "{differing} points");
}

#[test]
fn about_half_of_the_arithmetic_is_integer() {
    let steps = counted(VIEW, &picture(Variant::Scalar));
    let share = steps.float as f64 / (steps.float + steps.integer) as f64;
    assert!((0.48..0.52).contains(&share), "{share}");
}

#[test]
fn a_step_is_as_many_operations_as_is_said() {
    use std::cell::Cell;
    use std::ops::{Add, Mul, Sub};
    thread_local!(static COUNT: Cell<u64> = const { Cell::new(0) });
    fn tick() {
        COUNT.with(|count| count.set(count.get() + 1));
    }
    #[derive(Clone, Copy)]
    struct Counting(f64);
    impl Add for Counting {
        type Output = Self;
        fn add(self, other: Self) -> Self {
            tick();
            Self(self.0 + other.0)
        }
    }
    impl Sub for Counting {
        type Output = Self;
        fn sub(self, other: Self) -> Self {
            tick();
            Self(self.0 - other.0)
        }
    }
    impl Mul for Counting {
        type Output = Self;
        fn mul(self, other: Self) -> Self {
            tick();
            Self(self.0 * other.0)
        }
    }
    impl Number for Counting {
        fn from_f64(value: f64) -> Self {
            Self(value)
        }
        fn within(self, limit: Self) -> bool {
            tick();
            self.0 <= limit.0
        }
    }
    let steps = escape(Complex::<Counting>::from_f64(-0.5, 0.0), 100);
    // In the source, a step has 11 operations. Two of them are squares that both the magnitude and the square need. The
    // compiler computes them only once.
    assert_eq!(COUNT.with(Cell::get), u64::from(steps) * (OPERATIONS_PER_STEP + 2));
}

#[test]
fn a_wrong_point_changes_the_checksum() {
    let mut steps = picture(Variant::Scalar);
    let right = checksum(&steps);
    steps[777] ^= 1;
    assert_ne!(checksum(&steps), right);
}
