-- True if the table has exactly these columns and the primary key.
select (select count(*) = :count and sum(lower(name) in (:names)) = :count
        and sum(pk > 0) = 1 and sum(lower(name) = 'ycsb_key' and pk > 0) = 1 from pragma_table_info('usertable'));
