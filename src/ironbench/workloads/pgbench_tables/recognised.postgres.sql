-- True if these are the tables of `pgbench -i`. Reads only the lowest and highest account numbers, because counting the
-- accounts would read every row.
select (select count(*) = :scale and max(bid) = :scale from pgbench_branches)
   and (select count(*) = :tellers and max(tid) = :tellers from pgbench_tellers)
   and (select min(aid) = 1 and max(aid) = :accounts from pgbench_accounts)
   and 3 = (select count(*) from pg_index where indisprimary and indrelid in
            ('pgbench_accounts'::regclass, 'pgbench_tellers'::regclass, 'pgbench_branches'::regclass))
   and ':fillfactor' = (select coalesce((select option_value from pg_options_to_table(reloptions)
                                         where option_name = 'fillfactor'), '100')
                        from pg_class where oid = 'pgbench_accounts'::regclass);
