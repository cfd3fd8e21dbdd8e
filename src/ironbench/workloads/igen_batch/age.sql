-- Archives the oldest month, drops its partition, and attaches a partition for a new month.
call batch_age();
