-- True if the table has exactly these columns and the primary key.
select (select count(*) = :count and sum(lower(column_name) in (:names)) = :count
        and sum(column_key = 'PRI') = 1 and sum(lower(column_name) = 'ycsb_key' and column_key = 'PRI') = 1
        from information_schema.columns where table_schema = database() and table_name = 'usertable');
