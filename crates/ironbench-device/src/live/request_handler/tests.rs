use super::*;

/// The answer to a request, as the test observed it.
#[derive(Debug, Default)]
struct Noted(std::sync::Arc<std::sync::Mutex<Vec<&'static str>>>);

impl Noted {
    fn is(self, word: &'static str) {
        self.0.lock().unwrap().push(word);
    }
}

impl Responder for Noted {
    fn send_data(self, _bytes: &[u8]) {
        self.is("data");
    }
    fn confirm_write(self, _length: u32) {
        self.is("written");
    }
    fn confirm(self) {
        self.is("done");
    }
    fn refuse(self, _error: i32) {
        self.is("refused");
    }
}

fn cuttable() -> RequestHandler {
    handler("free")
}

fn handler(model: &str) -> RequestHandler {
    let kinds = serde_json::json!({
        "free": {"kind": "free", "capacity": 1e12},
        "memory": {"kind": "memory", "capacity": 1e12, "latency": 0.001, "rate": 1e6},
    });
    let spec = serde_json::json!({
        "model": model, "models": kinds, "seed": 1, "backing": null, "cuttable": true,
        "partitions": [{"name": "data", "bytes": 1 << 20}],
    });
    RequestHandler::new(&DeviceSpec::read(spec.to_string().as_bytes()).unwrap()).unwrap()
}

#[test]
fn a_flush_whose_writes_a_cut_has_taken_back_is_not_confirmed() {
    let handler = cuttable();
    handler.store(0, 0, &[1; 512]).unwrap();
    assert!(handler.make_durable(1));
    handler.store(0, 512, &[2; 512]).unwrap();
    assert_eq!(handler.cut_power(PowerCut::Lose, 1).unwrap(), 1);
    assert!(!handler.make_durable(2));
    let left = handler.partitions[0].image.read(0, 1024, <[u8]>::to_vec).unwrap();
    assert_eq!((left[0], left[512]), (1, 0));
}

#[test]
fn a_power_cut_takes_discards_and_zeroing_that_were_not_flushed() {
    for how in [Clearing::Discard, Clearing::Zero] {
        let handler = cuttable();
        handler.store(0, 4096, &[7; 8192]).unwrap();
        let last = locked(handler.undo.as_ref().unwrap()).last_number();
        assert!(handler.make_durable(last));
        let answers = Noted::default();
        assert!(handler.clear(0, 0, 1 << 20, how, Noted(answers.0.clone())).is_none());
        assert_eq!(*answers.0.lock().unwrap(), ["done"]);
        let byte = || handler.partitions[0].image.read(4096, 1, |bytes| bytes[0]).unwrap();
        assert_eq!(byte(), 0);
        assert_eq!(handler.cut_power(PowerCut::Lose, 1).unwrap(), 1);
        assert_eq!(byte(), 7);
        assert!(handler.clear(0, 0, 4096, how, Noted(answers.0.clone())).is_none());
        assert_eq!(answers.0.lock().unwrap()[1], "refused");
    }
}

#[test]
fn zeroing_takes_as_long_as_writing_and_a_discard_as_long_as_a_small_write() {
    let handler = handler("memory");
    handler.pace(Mode::Model);
    let took_ns = |how| {
        let pending = handler.clear(0, 0, 1 << 20, how, Noted::default()).expect("the model takes time");
        let took_ns = pending.due() - pending.arrival();
        handler.send_reply(pending, 0);
        took_ns
    };
    let (discard, zeroing) = (took_ns(Clearing::Discard), took_ns(Clearing::Zero));
    assert!((5_000_000..7_000_000).contains(&discard), "{discard}");
    assert!(zeroing > 1_040_000_000, "{zeroing}");
    let counts = handler.partitions[0].tally.counts();
    assert_eq!((counts.write.count, counts.write.bytes, counts.in_flight), (1, 1 << 20, 0));
}
