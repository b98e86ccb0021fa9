-- Which mounts were looked at before, also where they offered nothing then.
create table mount_met (
    mount text primary key,
    met_at bigint not null
);
insert into mount_met (mount, met_at) select mount, min(seen_at) from mount_tool group by mount;
