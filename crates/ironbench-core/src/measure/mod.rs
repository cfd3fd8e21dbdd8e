//! Clock, schedules, histograms.
