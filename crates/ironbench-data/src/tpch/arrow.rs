//! The rows as Arrow record batches, for engines that read this format directly.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
pub use arrow::ffi_stream::FFI_ArrowArrayStream;
use arrow::record_batch::RecordBatchReader;
use ironbench_core::{Error, Result};
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator,
    RegionGenerator, SupplierGenerator,
};
use tpchgen_arrow::{
    CustomerArrow, LineItemArrow, NationArrow, OrderArrow, PartArrow, PartSuppArrow, RegionArrow, SupplierArrow,
};

use super::Tpch;
use crate::Progress;

type Reader = Box<dyn RecordBatchReader + Send>;

/// Returns the rows of the given units of one table as an Arrow C stream. The rows are generated when the stream is
/// read.
///
/// <https://arrow.apache.org/docs/format/CStreamInterface.html>
pub fn stream(tpch: &Tpch, table: &str, units: Range<u64>, progress: Arc<Progress>) -> Result<FFI_ArrowArrayStream> {
    if tpch.refresh_set.is_some() || tpch.whole_numbers {
        return Err(Error::input(table, "Arrow streams contain only the rows of a load, with decimals"));
    }
    let Some(first) = tpch.tables().iter().find(|info| info.name == table).map(|_| reader(tpch, table, units.start))
    else {
        return Err(Error::input(table, "no such table in this workload"));
    };
    let schema = first.schema();
    let rest = units.start + 1..units.end;
    let units = Units { tpch: tpch.clone(), table: table.to_owned(), rest, current: first, schema, progress };
    Ok(FFI_ArrowArrayStream::new(Box::new(units)))
}

fn reader(tpch: &Tpch, table: &str, unit: u64) -> Reader {
    let sf = tpch.scale_factor;
    let (part, parts) = tpch.part(table, unit);
    match table {
        "lineitem" => Box::new(LineItemArrow::new(LineItemGenerator::new(sf, part, parts))),
        "orders" => Box::new(OrderArrow::new(OrderGenerator::new(sf, part, parts))),
        "partsupp" => Box::new(PartSuppArrow::new(PartSuppGenerator::new(sf, part, parts))),
        "part" => Box::new(PartArrow::new(PartGenerator::new(sf, part, parts))),
        "customer" => Box::new(CustomerArrow::new(CustomerGenerator::new(sf, part, parts))),
        "supplier" => Box::new(SupplierArrow::new(SupplierGenerator::new(sf, part, parts))),
        "nation" => Box::new(NationArrow::new(NationGenerator::new(sf, part, parts))),
        _ => Box::new(RegionArrow::new(RegionGenerator::new(sf, part, parts))),
    }
}

/// Iterates over units one after the other.
struct Units {
    tpch: Tpch,
    table: String,
    rest: Range<u64>,
    current: Reader,
    schema: SchemaRef,
    progress: Arc<Progress>,
}

impl Iterator for Units {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(batch) = self.current.next() {
                return Some(batch.and_then(|batch| {
                    let counted = self.progress.add(batch.num_rows() as u64, batch.get_array_memory_size() as u64);
                    counted.map(|()| batch).map_err(|error| ArrowError::ExternalError(error.to_string().into()))
                }));
            }
            self.current = reader(&self.tpch, &self.table, self.rest.next()?);
        }
    }
}

impl RecordBatchReader for Units {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
