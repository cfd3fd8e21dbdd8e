use super::*;
use crate::device::Op;
use crate::testing::models;
use crate::text::parse;

fn built(text: &str, capacity: Option<u64>) -> Result<Box<dyn Device>> {
    build(&parse(text)?, &models(), capacity, 1)
}

#[test]
fn arrays_hold_what_their_kind_lets_them() {
    const GB: u64 = 1 << 30;
    for (text, factor) in [
        ("raid0(4, disk(capacity=1G))", 4),
        ("raid1(2, disk(capacity=1G))", 1),
        ("raid10(4, disk(capacity=1G))", 2),
        ("raid5(5, disk(capacity=1G))", 4),
        ("spread(4 x flash(capacity=1G), 2 x disk(capacity=1G))", 6),
        ("behind(card, raid0(2, disk(capacity=1G)))", 2),
    ] {
        assert_eq!(built(text, None).unwrap().capacity(), factor * GB, "{text}");
    }
    for text in
        ["raid0(3, disk)", "raid1(2, flash)", "raid10(6, disk)", "raid5(3, disk)", "spread(disk, flash)", "volume"]
    {
        let device = built(text, Some(10_000_000_001)).unwrap();
        assert!((10_000_000_001..10_001_000_000).contains(&device.capacity()), "{text} {}", device.capacity());
    }
}

#[test]
fn mistakes_are_named_with_their_column_and_the_nearest_name() {
    for (text, column, cause, hint) in [
        ("raid0( 4 x dsk)", 12, "unknown device model dsk", "did you mean disk?"),
        ("raid0(disk, strip=64K)", 13, "no option strip", "did you mean stripe?"),
        ("raid0(2, disk, stripe=1000)", 16, "multiple of 4K", ""),
        ("disk(stroke=64K)", 6, "must be a percentage", ""),
        ("disk(cache=maybe)", 6, "on or off", ""),
        ("disk(fill=50%)", 6, "no option fill", ""),
        ("disk(flash)", 6, "cannot contain devices", ""),
        ("card", 1, "stores no data", "behind(card"),
        ("behind(disk, disk)", 8, "unknown controller or bus disk", "known: card"),
        ("behind(card, 2 x disk)", 18, "into one", "raid0"),
        ("raid5(2, disk)", 1, "at least 3", ""),
        ("raid10(5, disk)", 1, "even", ""),
        ("rad0(2, disk)", 1, "unknown device model rad0", "did you mean raid0?"),
    ] {
        let error = built(text, None).err().unwrap_or_else(|| panic!("{text} was built"));
        assert!(error.cause.starts_with(&format!("column {column}: ")), "{text}: {error}");
        assert!(error.cause.contains(cause) && error.hint.contains(hint), "{text}: {error} {}", error.hint);
    }
}

#[test]
fn too_small_a_capacity_is_refused() {
    let error = built("disk(capacity=1G)", Some(2 << 30)).err().unwrap();
    assert!(error.cause.contains("1073741824"), "{error}");
}

#[test]
fn arrays_of_arrays_have_no_more_devices_than_can_be_built() {
    let refused = |text: &str| built(text, None).err().unwrap_or_else(|| panic!("{text} was built")).cause;
    assert!(refused("raid0(1024, raid0(5, disk))").contains("5120 devices exceed the maximum of 4096"));
    let beyond_counting = format!("{}disk{}", "raid0(1024, ".repeat(8), ")".repeat(8));
    assert!(refused(&beyond_counting).contains("maximum of 4096"));
    assert!(built("raid0(1024, raid0(4, free))", Some(1 << 30)).is_ok());
}

#[test]
fn the_same_seed_gives_the_same_completions_and_another_does_not() {
    let run = |seed| {
        let mut device = build(&parse("raid0(2, disk)").unwrap(), &models(), None, seed).unwrap();
        (0..100u64).map(|i| device.submit(i * 1000, Op::Read, i * 7_919_000_576, 4096)).collect::<Vec<_>>()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}
