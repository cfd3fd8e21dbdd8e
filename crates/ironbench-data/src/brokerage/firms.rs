//! Companies, their securities, past prices, financial data and news.

use std::sync::OnceLock;

use super::fixed::{exchange_id, industry_id};
use super::market::{self, PAST_DAYS, PAST_FIRST_DAY, Symbol, business_day};
use super::shapes::{EXCHANGE_ADDRESSES, INDUSTRIES, NEWS_PER_COMPANY};
use super::words::{FIRM_BEGINS, FIRM_ENDS, FIRM_MIDDLES, NEWS, PAPERS, RATINGS};
use super::{Brokerage, Purpose, id};
use crate::row::{Sink, TextBuffer};
use crate::row_rng::RowRng;
use crate::words::{FIRST_NAMES, LAST_NAMES};

const COMPETITORS: u64 = 3;
const QUARTERS: u64 = 20;
/// 2000-01-01 in days since 1970-01-01.
const YEAR_2000: i32 = 10_957;
/// Length of a text. Each news item is a piece of it, at a different offset.
const NEWS_TEXT: usize = 1 << 18;
const HEADLINE: usize = 60;
const SUMMARY: usize = 180;

/// Returns the company's name, which is unique.
pub fn firm<'a>(company: u64, end: &str, buffer: &'a mut TextBuffer) -> &'a str {
    let names = (FIRM_BEGINS.len() * FIRM_MIDDLES.len() * FIRM_ENDS.len()) as u64;
    // The mapping is a bijection, because the factor is odd and not a multiple of 5.
    let index = ((company % names) * 6151 + 17) % names;
    let (round, index) = (company / names, index as usize);
    let begin = FIRM_BEGINS[index % 32];
    let middle = FIRM_MIDDLES[index / 32 % 32];
    let last = FIRM_ENDS[index / 1024];
    match round {
        0 => buffer.of(format_args!("{begin} {middle} {last}{end}")),
        _ => buffer.of(format_args!("{begin} {middle} {last} {}{end}", round + 1)),
    }
}

fn news_text() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        let mut rng = RowRng::new(0, Purpose::News as u64, 0);
        let mut text = String::with_capacity(NEWS_TEXT + 16);
        while text.len() < NEWS_TEXT {
            text.push_str(rng.pick(&NEWS));
            text.push(' ');
        }
        text
    })
}

impl Brokerage {
    pub(super) fn company<S: Sink>(&self, number: u64, buffer: &mut TextBuffer, sink: &mut S) -> Result<(), S::Error> {
        let mut rng = self.rng(Purpose::Company, number);
        sink.bigint(id(number));
        sink.text("ACTV");
        sink.text(firm(number, "", buffer));
        sink.text(industry_id(number % INDUSTRIES, buffer));
        sink.text(rng.pick(&RATINGS));
        sink.text(buffer.of(format_args!("{} {}", rng.pick(FIRST_NAMES), rng.pick(LAST_NAMES))));
        sink.bigint(id(EXCHANGE_ADDRESSES + number));
        let since = rng.between(30, 200);
        sink.text(firm(number, " makes what its trade asks for and has done so for generations.", buffer));
        sink.date((PAST_FIRST_DAY - since * 365) as i32);
        sink.end_row()
    }

    /// Emits the next three companies of the same industry.
    pub(super) fn competitors<S: Sink>(
        &self,
        number: u64,
        buffer: &mut TextBuffer,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        let industry = number % INDUSTRIES;
        let firms = (self.companies() - industry).div_ceil(INDUSTRIES);
        for step in 1..=COMPETITORS {
            sink.bigint(id(number));
            sink.bigint(id((number / INDUSTRIES + step) % firms * INDUSTRIES + industry));
            sink.text(industry_id(industry, buffer));
            sink.end_row()?;
        }
        Ok(())
    }

    pub(super) fn security<S: Sink>(&self, number: u64, buffer: &mut TextBuffer, sink: &mut S) -> Result<(), S::Error> {
        let mut rng = self.rng(Purpose::Security, number);
        let (company, preferred) = market::issuer(number);
        let issue = market::issue(preferred);
        sink.text(Symbol::of(number).as_str());
        sink.text(issue);
        sink.text("ACTV");
        sink.text(firm(company, if preferred { " preferred" } else { " common" }, buffer));
        sink.text(exchange_id(market::exchange(number)));
        sink.bigint(id(company));
        sink.bigint(rng.between(4_000_000, 9_500_000_000));
        let start = PAST_FIRST_DAY - rng.between(1, 20_000);
        sink.date(start as i32);
        sink.date((start + rng.between(0, PAST_FIRST_DAY - start)) as i32);
        sink.decimal(rng.between(100, 12_000));
        let last_year = |rng: &mut RowRng| business_day(PAST_FIRST_DAY, PAST_DAYS - 1 - rng.below(261)) as i32;
        sink.decimal(rng.between(2_500, 3_000));
        sink.date(last_year(&mut rng));
        sink.decimal(rng.between(2_000, 2_499));
        sink.date(last_year(&mut rng));
        sink.decimal(rng.between(0, 1_000));
        sink.decimal(rng.between(0, 9_000));
        sink.end_row()
    }

    /// Emits the price of a security at the end of the initial trades. The volume is 0, because no trade of the next
    /// day has happened yet.
    pub(super) fn last_trade<S: Sink>(&self, number: u64, sink: &mut S) -> Result<(), S::Error> {
        let end = self.span_ms() - 1;
        let price = market::price_cents(number, end);
        sink.text(Symbol::of(number).as_str());
        sink.moment(market::moment(end));
        sink.decimal(price);
        sink.decimal(price);
        sink.bigint(0);
        sink.end_row()
    }

    /// Emits the prices of a business day. Rows are ordered by day, as they would arrive.
    pub(super) fn daily_market<S: Sink>(&self, day: u64, sink: &mut S) -> Result<(), S::Error> {
        let date = business_day(PAST_FIRST_DAY, day) as i32;
        for security in 0..self.securities() {
            let mut rng = self.rng(Purpose::Prices, security * PAST_DAYS + day);
            let (low, high) = (rng.between(2_000, 2_400), rng.between(2_600, 3_000));
            sink.date(date);
            sink.text(Symbol::of(security).as_str());
            sink.decimal(rng.between(low, high));
            sink.decimal(high);
            sink.decimal(low);
            sink.bigint(rng.between(1_000, 10_000));
            sink.end_row()?;
        }
        Ok(())
    }

    /// Emits the data of twenty quarters, from 2000 on.
    pub(super) fn financial<S: Sink>(&self, number: u64, sink: &mut S) -> Result<(), S::Error> {
        let mut rng = self.rng(Purpose::Financial, number);
        let shares = rng.between(400_000, 9_500_000_000);
        for quarter in 0..QUARTERS {
            let (year, part) = (quarter / 4, quarter % 4);
            // In 2000 and 2004, the leap day precedes the second quarter.
            let before = 365 * year + u64::from(year > 0) + u64::from(year % 4 == 0 && part > 0);
            let start = before + [0, 90, 181, 273][part as usize];
            let revenue = rng.between(100_000_000, 1_600_000_000_000);
            let margin = rng.between(5, 50);
            let earned = revenue / 100 * margin;
            let diluted = shares + shares / 10;
            sink.bigint(id(number));
            sink.smallint(2000 + year as i16);
            sink.smallint(part as i16 + 1);
            sink.date(YEAR_2000 + start as i32);
            sink.decimal(revenue);
            sink.decimal(earned);
            sink.decimal(earned / shares);
            sink.decimal(earned / diluted);
            sink.decimal(margin);
            sink.decimal(rng.between(0, 200_000_000_000));
            let assets = rng.between(100_000_000, 9_000_000_000_000);
            sink.decimal(assets);
            sink.decimal(assets / 100 * rng.between(10, 90));
            sink.bigint(shares);
            sink.bigint(diluted);
            sink.end_row()?;
        }
        Ok(())
    }

    pub(super) fn news_item<S: Sink>(
        &self,
        number: u64,
        buffer: &mut TextBuffer,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        let mut rng = self.rng(Purpose::News, number + 1);
        let text = news_text();
        let mut cut = |length: usize| {
            let start = rng.below((NEWS_TEXT - length) as u64) as usize;
            text[start..start + length].trim()
        };
        let (headline, summary) = (cut(HEADLINE), cut(SUMMARY));
        let item = cut(self.lob.bytes());
        sink.bigint(id(number));
        sink.text(headline);
        sink.text(summary);
        sink.text(item);
        let day = business_day(PAST_FIRST_DAY, rng.below(PAST_DAYS));
        sink.moment(day * 86_400_000 + rng.between(0, 86_399_999));
        sink.text(rng.pick(&PAPERS));
        sink.text(buffer.of(format_args!("{} {}", rng.pick(FIRST_NAMES), rng.pick(LAST_NAMES))));
        sink.end_row()
    }

    pub(super) fn news_xref<S: Sink>(&self, number: u64, sink: &mut S) -> Result<(), S::Error> {
        sink.bigint(id(number));
        sink.bigint(id(number / NEWS_PER_COMPANY));
        sink.end_row()
    }
}
