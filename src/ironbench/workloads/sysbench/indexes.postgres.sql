select count(*) from pg_class where relkind = 'i' and relname in (:indexes) and pg_table_is_visible(oid);
