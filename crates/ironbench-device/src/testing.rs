//! Models for the tests of this crate. These models have round numbers instead of the figures of a product.

use crate::parameters::Models;

pub fn models() -> Models {
    let json = r#"{
        "free": {"kind": "free", "capacity": 1e12},
        "memory": {"kind": "memory", "capacity": 64e9, "latency": 1e-7, "rate": 10e9},
        "disk": {"kind": "disk", "capacity": 1e12, "rpm": 7200, "seek_track_read": 0.0005, "seek_average_read": 0.008,
            "seek_full_read": 0.017, "seek_track_write": 0.0008, "seek_average_write": 0.009, "seek_full_write": 0.018,
            "rate_outer": 150e6, "rate_inner": 75e6, "interface_rate": 300e6, "overhead": 0.0001, "queue": 32,
            "cache": 16777216, "write_cache": false, "read_ahead": 1048576},
        "flat": {"kind": "disk", "capacity": 1e12, "rpm": 7200, "seek_track_read": 0.0005, "seek_average_read": 0.008,
            "seek_full_read": 0.017, "seek_track_write": 0.0005, "seek_average_write": 0.008, "seek_full_write": 0.017,
            "rate_outer": 100e6, "rate_inner": 100e6, "interface_rate": 300e6, "overhead": 0, "queue": 32,
            "cache": 16777216, "write_cache": false, "read_ahead": 1048576},
        "flash": {"kind": "flash", "capacity": 256e9, "units": 8, "page": 16384, "switch": 0, "read_latency": 0.0001,
            "read_iops": 40000, "read_depth": 32, "read_rate": 400e6, "write_latency": 0.00005, "write_iops": 30000,
            "write_rate": 250e6, "sustained_write_iops": 10000, "sustained_write_rate": 200e6, "interface_rate": 550e6,
            "duplex": false, "buffer": 33554432, "quick_flash": 0, "write_cache": true, "protected": false,
            "flush_latency": 0.001, "spare": 0.07, "rated_fill": 1.0, "compresses": true, "host_cpu": 0},
        "volume": {"kind": "volume", "capacity": 1e12, "iops": 3000, "rate": 131072000, "read_latency": 0.001,
            "write_latency": 0.001, "io_size": 262144, "burst": 0.1},
        "card": {"kind": "controller", "rate": 1e9, "iops": 100000, "latency": 0.00005, "cache": 268435456,
            "write_cache": true}
    }"#;
    Models::from_json(json.as_bytes()).expect("these models are whole")
}
