-- One clustered table of uses with a row for each window that a use counts in, instead of a table with two indexes.
alter table meter_use rename to meter_use_before;
create table meter_use (
    agent text not null,
    scope text not null,
    number bigint not null,
    at bigint not null,
    primary key (agent, scope, number)
) without rowid; -- sqlite
); -- postgres
insert into meter_use (agent, scope, number, at)
    select agent, '', number, at from meter_use_before union all select agent, domain, domain_number, at from meter_use_before;
drop table meter_use_before;
