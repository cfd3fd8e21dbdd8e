-- The index has the same name as in sysbench.
create index k_:n on sbtest:n (k);
