INSERT INTO date_time VALUES ('2023-07-04 12:00:00');
INSERT INTO poplar_version (string) VALUES ('3.3.0 (synthetic)');
INSERT INTO version_info (major, minor) VALUES (3, 8);
INSERT INTO target_parameters VALUES ('GatewayMode', '1', 0);
INSERT INTO target_parameters VALUES ('IpuLinkDomainSize', '64', 1);
