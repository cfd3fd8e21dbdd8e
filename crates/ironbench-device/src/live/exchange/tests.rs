use super::*;

fn cuttable() -> Exchange {
    let spec = serde_json::json!({
        "model": "free", "seed": 1, "backing": null, "cuttable": true,
        "partitions": [{"name": "data", "bytes": 1 << 20}],
    });
    Exchange::new(&Spec::read(spec.to_string().as_bytes()).unwrap()).unwrap()
}

#[test]
fn a_flush_whose_writes_a_cut_has_taken_back_is_not_confirmed() {
    let exchange = cuttable();
    exchange.store(0, 0, &[1; 512]).unwrap();
    assert!(exchange.settled(1));
    exchange.store(0, 512, &[2; 512]).unwrap();
    assert_eq!(exchange.cut(Cut::Lose, 1).unwrap(), 1);
    assert!(!exchange.settled(2));
    let left = exchange.partitions[0].image.read(0, 1024, <[u8]>::to_vec).unwrap();
    assert_eq!((left[0], left[512]), (1, 0));
}
