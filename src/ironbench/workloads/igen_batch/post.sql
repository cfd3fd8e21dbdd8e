-- Posts a batch of sales to the two newest months.
\set seed random(1, 1000000000)
call batch_post(:seed, :lines);
