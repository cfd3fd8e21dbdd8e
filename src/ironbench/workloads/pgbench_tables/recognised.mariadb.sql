-- True if these are pgbench's tables at this scale. Reads only the lowest and highest account numbers, because counting
-- the accounts would read every row.
select (select count(*) = :scale and max(bid) = :scale from pgbench_branches)
   and (select count(*) = :tellers and max(tid) = :tellers from pgbench_tellers)
   and (select min(aid) = 1 and max(aid) = :accounts from pgbench_accounts)
   and 3 = (select count(*) from information_schema.table_constraints
             where table_schema = database() and constraint_type = 'PRIMARY KEY'
               and table_name in ('pgbench_accounts', 'pgbench_tellers', 'pgbench_branches'));
