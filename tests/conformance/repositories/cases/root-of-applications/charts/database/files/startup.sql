create table orders (id bigint primary key);
create index on orders (id);
