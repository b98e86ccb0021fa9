-- What a person looks for in the inbox again and again, by the name that they gave it.
create table kept_filter (
    person text not null,
    name text not null,
    filter text not null,
    kept_at bigint not null,
    primary key (person, name)
);
