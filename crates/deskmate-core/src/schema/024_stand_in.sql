-- Who decides in the place of a person for a while. It gives nobody a role: a stand-in decides where their own role covers the domain.
create table stand_in (
    person text not null primary key,
    stand_in text not null,
    until_at bigint not null,
    named_at bigint not null
);
