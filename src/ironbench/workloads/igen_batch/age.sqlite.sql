begin immediate;
insert into batch_archive
select month, count(*), sum(amount_cents) from batch_history
where month = (select min(month) from batch_month) group by month;
delete from batch_history where month = (select min(month) from batch_month);
insert into batch_job (kind, line_count) values ('age', changes());
delete from batch_ledger where month = (select min(month) from batch_month);
insert into batch_month select max(month) + 1 from batch_month;
delete from batch_month where month = (select min(month) from batch_month);
end;
