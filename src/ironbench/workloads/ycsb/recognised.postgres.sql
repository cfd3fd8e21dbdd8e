-- True if the table has exactly these columns and the primary key.
select (select count(*) = :count and count(*) filter (where attname in (:names)) = :count
        from pg_attribute where attrelid = 'usertable'::regclass and attnum > 0 and not attisdropped)
   and (select count(*) = 1 and min(array_length(indkey::int2[], 1)) = 1 and min(attname) = 'ycsb_key'
        from pg_index join pg_attribute on attrelid = indrelid and attnum = indkey[0]
        where indisprimary and indrelid = 'usertable'::regclass);
