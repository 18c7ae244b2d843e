// Code generated from data/*.yaml by go test -run TestTables -update; DO NOT EDIT.

package topology

var defaultsTree = node{kind: nMap, file: "defaults.yaml", line: 3, col: 1, keys: []entry{
	{"run", 3, 1, &node{kind: nMap, file: "defaults.yaml", line: 3, col: 6, keys: []entry{
		{"until", 3, 7, &node{kind: nScalar, file: "defaults.yaml", line: 3, col: 14, text: "idle"}},
		{"limit", 3, 20, &node{kind: nScalar, file: "defaults.yaml", line: 3, col: 27, text: "60s"}},
		{"window", 3, 32, &node{kind: nScalar, file: "defaults.yaml", line: 3, col: 40, text: "auto"}},
		{"warmup", 3, 46, &node{kind: nScalar, file: "defaults.yaml", line: 3, col: 54, text: "0us"}},
		{"workers", 3, 59, &node{kind: nScalar, file: "defaults.yaml", line: 3, col: 68, text: "0"}},
	}}},
	{"topology", 4, 1, &node{kind: nMap, file: "defaults.yaml", line: 5, col: 3, keys: []entry{
		{"cross_pod_rdma", 5, 3, &node{kind: nScalar, file: "defaults.yaml", line: 5, col: 19, text: "refuse"}},
		{"ports", 6, 3, &node{kind: nScalar, file: "defaults.yaml", line: 6, col: 10, text: "1"}},
		{"links", 7, 3, &node{kind: nMap, file: "defaults.yaml", line: 8, col: 5, keys: []entry{
			{"server", 8, 5, &node{kind: nMap, file: "defaults.yaml", line: 8, col: 13, keys: []entry{
				{"rate", 8, 14, &node{kind: nScalar, file: "defaults.yaml", line: 8, col: 20, text: "25Gbps"}},
				{"length", 8, 28, &node{kind: nScalar, file: "defaults.yaml", line: 8, col: 36, text: "3m"}},
				{"ber", 8, 40, &node{kind: nScalar, file: "defaults.yaml", line: 8, col: 45, text: "0"}},
			}}},
			{"uplink", 9, 5, &node{kind: nMap, file: "defaults.yaml", line: 9, col: 13, keys: []entry{
				{"rate", 9, 14, &node{kind: nScalar, file: "defaults.yaml", line: 9, col: 20, text: "100Gbps"}},
				{"length", 9, 29, &node{kind: nScalar, file: "defaults.yaml", line: 9, col: 37, text: "100m"}},
				{"ber", 9, 43, &node{kind: nScalar, file: "defaults.yaml", line: 9, col: 48, text: "0"}},
				{"per_pair", 9, 51, &node{kind: nScalar, file: "defaults.yaml", line: 9, col: 61, text: "1"}},
			}}},
			{"core", 10, 5, &node{kind: nMap, file: "defaults.yaml", line: 10, col: 11, keys: []entry{
				{"rate", 10, 12, &node{kind: nScalar, file: "defaults.yaml", line: 10, col: 18, text: "100Gbps"}},
				{"length", 10, 27, &node{kind: nScalar, file: "defaults.yaml", line: 10, col: 35, text: "300m"}},
				{"ber", 10, 41, &node{kind: nScalar, file: "defaults.yaml", line: 10, col: 46, text: "0"}},
				{"uplinks_per_spine", 10, 49, &node{kind: nScalar, file: "defaults.yaml", line: 10, col: 68, text: "1"}},
			}}},
		}}},
	}}},
	{"switches", 11, 1, &node{kind: nMap, file: "defaults.yaml", line: 12, col: 3, keys: []entry{
		{"all", 12, 3, &node{kind: nMap, file: "defaults.yaml", line: 13, col: 5, keys: []entry{
			{"asic", 13, 5, &node{kind: nScalar, file: "defaults.yaml", line: 13, col: 11, text: "generic"}},
			{"mode", 14, 5, &node{kind: nScalar, file: "defaults.yaml", line: 14, col: 11, text: "store-and-forward"}},
			{"latency", 15, 5, &node{kind: nScalar, file: "defaults.yaml", line: 15, col: 14, text: "1us"}},
			{"boot", 16, 5, &node{kind: nScalar, file: "defaults.yaml", line: 16, col: 11, text: "0s"}},
			{"mtu", 17, 5, &node{kind: nScalar, file: "defaults.yaml", line: 17, col: 10, text: "9216B"}},
			{"buffer", 18, 5, &node{kind: nMap, file: "defaults.yaml", line: 18, col: 13, keys: []entry{
				{"size", 18, 14, &node{kind: nScalar, file: "defaults.yaml", line: 18, col: 20, text: "12MiB"}},
				{"cell", 18, 27, &node{kind: nScalar, file: "defaults.yaml", line: 18, col: 33, text: "208B"}},
				{"slices", 18, 39, &node{kind: nScalar, file: "defaults.yaml", line: 18, col: 47, text: "1"}},
				{"headroom_pool", 18, 50, &node{kind: nScalar, file: "defaults.yaml", line: 18, col: 65, text: "none"}},
				{"cap_per_pg", 18, 71, &node{kind: nScalar, file: "defaults.yaml", line: 18, col: 83, text: "none"}},
				{"reserve_off", 18, 89, &node{kind: nScalar, file: "defaults.yaml", line: 18, col: 102, text: "false"}},
			}}},
			{"qos", 19, 5, &node{kind: nMap, file: "defaults.yaml", line: 20, col: 7, keys: []entry{
				{"dscp_to_tc", 20, 7, &node{kind: nMap, file: "defaults.yaml", line: 20, col: 19, keys: []entry{
					{"26", 20, 20, &node{kind: nScalar, file: "defaults.yaml", line: 20, col: 24, text: "3"}},
					{"48", 20, 27, &node{kind: nScalar, file: "defaults.yaml", line: 20, col: 31, text: "6"}},
				}}},
				{"scheduler", 21, 7, &node{kind: nMap, file: "defaults.yaml", line: 21, col: 18, keys: []entry{
					{"3", 21, 19, &node{kind: nMap, file: "defaults.yaml", line: 21, col: 22, keys: []entry{
						{"weight", 21, 23, &node{kind: nScalar, file: "defaults.yaml", line: 21, col: 31, text: "50"}},
					}}},
					{"6", 21, 36, &node{kind: nScalar, file: "defaults.yaml", line: 21, col: 39, text: "strict"}},
				}}},
			}}},
			{"pfc", 22, 5, &node{kind: nMap, file: "defaults.yaml", line: 23, col: 7, keys: []entry{
				{"priorities", 23, 7, &node{kind: nSeq, file: "defaults.yaml", line: 23, col: 19, items: []*node{
					{kind: nScalar, file: "defaults.yaml", line: 23, col: 20, text: "3"},
				}}},
				{"alpha", 24, 7, &node{kind: nScalar, file: "defaults.yaml", line: 24, col: 14, text: "1/8"}},
				{"guaranteed", 25, 7, &node{kind: nScalar, file: "defaults.yaml", line: 25, col: 19, text: "0B"}},
				{"xon_offset", 26, 7, &node{kind: nScalar, file: "defaults.yaml", line: 26, col: 19, text: "18KB"}},
				{"headroom", 27, 7, &node{kind: nScalar, file: "defaults.yaml", line: 27, col: 17, text: "auto"}},
				{"quanta", 28, 7, &node{kind: nScalar, file: "defaults.yaml", line: 28, col: 15, text: "65535"}},
				{"response", 29, 7, &node{kind: nScalar, file: "defaults.yaml", line: 29, col: 17, text: "1us"}},
			}}},
			{"lossy", 30, 5, &node{kind: nMap, file: "defaults.yaml", line: 30, col: 12, keys: []entry{
				{"alpha", 30, 13, &node{kind: nScalar, file: "defaults.yaml", line: 30, col: 20, text: "8"}},
			}}},
			{"ecn", 31, 5, &node{kind: nMap, file: "defaults.yaml", line: 31, col: 10, keys: []entry{
				{"kmin", 31, 11, &node{kind: nScalar, file: "defaults.yaml", line: 31, col: 17, text: "100KB"}},
				{"kmax", 31, 24, &node{kind: nScalar, file: "defaults.yaml", line: 31, col: 30, text: "400KB"}},
				{"pmax", 31, 37, &node{kind: nScalar, file: "defaults.yaml", line: 31, col: 43, text: "0.2"}},
				{"point", 31, 48, &node{kind: nScalar, file: "defaults.yaml", line: 31, col: 55, text: "dequeue"}},
				{"weight", 31, 64, &node{kind: nScalar, file: "defaults.yaml", line: 31, col: 72, text: "0"}},
				{"mark", 31, 75, &node{kind: nScalar, file: "defaults.yaml", line: 31, col: 81, text: "true"}},
				{"drop_not_ect", 31, 87, &node{kind: nScalar, file: "defaults.yaml", line: 31, col: 101, text: "false"}},
			}}},
			{"ecmp", 32, 5, &node{kind: nMap, file: "defaults.yaml", line: 32, col: 11, keys: []entry{
				{"hash", 32, 12, &node{kind: nScalar, file: "defaults.yaml", line: 32, col: 18, text: "murmur3"}},
				{"seed", 32, 27, &node{kind: nScalar, file: "defaults.yaml", line: 32, col: 33, text: "auto"}},
				{"spray", 32, 39, &node{kind: nScalar, file: "defaults.yaml", line: 32, col: 46, text: "none"}},
			}}},
			{"ports", 33, 5, &node{kind: nMap, file: "defaults.yaml", line: 34, col: 7, keys: []entry{
				{"core", 34, 7, &node{kind: nMap, file: "defaults.yaml", line: 34, col: 13, keys: []entry{
					{"pfc", 34, 14, &node{kind: nMap, file: "defaults.yaml", line: 34, col: 19, keys: []entry{
						{"priorities", 34, 20, &node{kind: nSeq, file: "defaults.yaml", line: 34, col: 32}},
					}}},
				}}},
			}}},
		}}},
	}}},
	{"rnics", 35, 1, &node{kind: nMap, file: "defaults.yaml", line: 36, col: 3, keys: []entry{
		{"all", 36, 3, &node{kind: nMap, file: "defaults.yaml", line: 37, col: 5, keys: []entry{
			{"model", 37, 5, &node{kind: nScalar, file: "defaults.yaml", line: 37, col: 12, text: "generic"}},
			{"mtu", 38, 5, &node{kind: nScalar, file: "defaults.yaml", line: 38, col: 10, text: "1024"}},
			{"recovery", 39, 5, &node{kind: nScalar, file: "defaults.yaml", line: 39, col: 15, text: "go-back-n"}},
			{"latency", 40, 5, &node{kind: nScalar, file: "defaults.yaml", line: 40, col: 14, text: "0ns"}},
			{"congestion", 41, 5, &node{kind: nScalar, file: "defaults.yaml", line: 41, col: 17, text: "dcqcn"}},
			{"dcqcn", 42, 5, &node{kind: nMap, file: "defaults.yaml", line: 42, col: 12, keys: []entry{
				{"preset", 42, 13, &node{kind: nScalar, file: "defaults.yaml", line: 42, col: 21, text: "paper"}},
			}}},
			{"swift", 43, 5, &node{kind: nMap, file: "defaults.yaml", line: 43, col: 12, keys: []entry{
				{"base_target", 43, 13, &node{kind: nScalar, file: "defaults.yaml", line: 43, col: 26, text: "25us"}},
				{"hop_scale", 43, 32, &node{kind: nScalar, file: "defaults.yaml", line: 43, col: 43, text: "1us"}},
				{"ai", 43, 48, &node{kind: nScalar, file: "defaults.yaml", line: 43, col: 52, text: "1024"}},
				{"beta", 43, 58, &node{kind: nScalar, file: "defaults.yaml", line: 43, col: 64, text: "820"}},
				{"max_mdf", 43, 69, &node{kind: nScalar, file: "defaults.yaml", line: 43, col: 78, text: "512"}},
			}}},
			{"dscp", 44, 5, &node{kind: nScalar, file: "defaults.yaml", line: 44, col: 11, text: "26"}},
			{"cnp_dscp", 45, 5, &node{kind: nScalar, file: "defaults.yaml", line: 45, col: 15, text: "48"}},
			{"pfc", 46, 5, &node{kind: nMap, file: "defaults.yaml", line: 46, col: 10, keys: []entry{
				{"priorities", 46, 11, &node{kind: nSeq, file: "defaults.yaml", line: 46, col: 23, items: []*node{
					{kind: nScalar, file: "defaults.yaml", line: 46, col: 24, text: "3"},
				}}},
				{"response", 46, 28, &node{kind: nScalar, file: "defaults.yaml", line: 46, col: 38, text: "same"}},
				{"quanta", 46, 44, &node{kind: nScalar, file: "defaults.yaml", line: 46, col: 52, text: "65535"}},
			}}},
			{"rx_buffer", 47, 5, &node{kind: nScalar, file: "defaults.yaml", line: 47, col: 16, text: "1MiB"}},
			{"sport", 48, 5, &node{kind: nScalar, file: "defaults.yaml", line: 48, col: 12, text: "from-qp"}},
			{"host", 49, 5, &node{kind: nMap, file: "defaults.yaml", line: 49, col: 11, keys: []entry{
				{"stack_latency", 49, 12, &node{kind: nScalar, file: "defaults.yaml", line: 49, col: 27, text: "20us"}},
				{"copies", 49, 33, &node{kind: nScalar, file: "defaults.yaml", line: 49, col: 41, text: "3"}},
				{"copy_rate", 49, 44, &node{kind: nScalar, file: "defaults.yaml", line: 49, col: 55, text: "100Gbps"}},
				{"per_packet", 49, 64, &node{kind: nScalar, file: "defaults.yaml", line: 49, col: 76, text: "300ns"}},
				{"per_request", 49, 83, &node{kind: nScalar, file: "defaults.yaml", line: 49, col: 96, text: "200ns"}},
			}}},
			{"tcp", 50, 5, &node{kind: nMap, file: "defaults.yaml", line: 50, col: 10, keys: []entry{
				{"mtu", 50, 11, &node{kind: nScalar, file: "defaults.yaml", line: 50, col: 16, text: "1500B"}},
				{"congestion", 50, 23, &node{kind: nScalar, file: "defaults.yaml", line: 50, col: 35, text: "cubic"}},
				{"initial_window", 50, 42, &node{kind: nScalar, file: "defaults.yaml", line: 50, col: 58, text: "10"}},
				{"window", 50, 62, &node{kind: nScalar, file: "defaults.yaml", line: 50, col: 70, text: "6MiB"}},
				{"rto_min", 50, 76, &node{kind: nScalar, file: "defaults.yaml", line: 50, col: 85, text: "200ms"}},
				{"rto_max", 50, 92, &node{kind: nScalar, file: "defaults.yaml", line: 50, col: 101, text: "60s"}},
				{"retries", 50, 106, &node{kind: nScalar, file: "defaults.yaml", line: 50, col: 115, text: "15"}},
			}}},
			{"ack", 51, 5, &node{kind: nScalar, file: "defaults.yaml", line: 51, col: 10, text: "last"}},
			{"qp", 52, 5, &node{kind: nMap, file: "defaults.yaml", line: 53, col: 7, keys: []entry{
				{"timeout", 53, 7, &node{kind: nScalar, file: "defaults.yaml", line: 53, col: 16, text: "14"}},
				{"retry_cnt", 54, 7, &node{kind: nScalar, file: "defaults.yaml", line: 54, col: 18, text: "7"}},
				{"rnr_retry", 55, 7, &node{kind: nScalar, file: "defaults.yaml", line: 55, col: 18, text: "7"}},
				{"min_rnr_timer", 56, 7, &node{kind: nScalar, file: "defaults.yaml", line: 56, col: 22, text: "12"}},
				{"max_rd_atomic", 57, 7, &node{kind: nScalar, file: "defaults.yaml", line: 57, col: 22, text: "16"}},
				{"max_dest_rd_atomic", 58, 7, &node{kind: nScalar, file: "defaults.yaml", line: 58, col: 27, text: "same"}},
				{"recv_queue", 59, 7, &node{kind: nScalar, file: "defaults.yaml", line: 59, col: 19, text: "512"}},
				{"recv_repost", 60, 7, &node{kind: nScalar, file: "defaults.yaml", line: 60, col: 20, text: "0us"}},
				{"recv_batch", 61, 7, &node{kind: nScalar, file: "defaults.yaml", line: 61, col: 19, text: "1"}},
				{"initial_psn", 62, 7, &node{kind: nScalar, file: "defaults.yaml", line: 62, col: 20, text: "0"}},
				{"timeout_mode", 63, 7, &node{kind: nScalar, file: "defaults.yaml", line: 63, col: 21, text: "ibta"}},
				{"timeout_window", 64, 7, &node{kind: nScalar, file: "defaults.yaml", line: 64, col: 23, text: "strict"}},
				{"timeout_floor", 65, 7, &node{kind: nScalar, file: "defaults.yaml", line: 65, col: 22, text: "0us"}},
				{"rnr_decode", 66, 7, &node{kind: nScalar, file: "defaults.yaml", line: 66, col: 19, text: "ibta"}},
				{"dup_ack", 67, 7, &node{kind: nScalar, file: "defaults.yaml", line: 67, col: 16, text: "ackreq"}},
				{"connect", 68, 7, &node{kind: nScalar, file: "defaults.yaml", line: 68, col: 16, text: "preset"}},
				{"packet_life", 69, 7, &node{kind: nScalar, file: "defaults.yaml", line: 69, col: 20, text: "18"}},
				{"ack_delay", 70, 7, &node{kind: nScalar, file: "defaults.yaml", line: 70, col: 18, text: "15"}},
				{"alt_path", 71, 7, &node{kind: nScalar, file: "defaults.yaml", line: 71, col: 17, text: "none"}},
				{"alt_timeout", 72, 7, &node{kind: nScalar, file: "defaults.yaml", line: 72, col: 20, text: "same"}},
				{"psn_window", 73, 7, &node{kind: nScalar, file: "defaults.yaml", line: 73, col: 19, text: "max"}},
				{"rnr_early", 74, 7, &node{kind: nScalar, file: "defaults.yaml", line: 74, col: 18, text: "drop"}},
				{"partial_read", 75, 7, &node{kind: nScalar, file: "defaults.yaml", line: 75, col: 21, text: "true"}},
				{"implied_nak", 76, 7, &node{kind: nScalar, file: "defaults.yaml", line: 76, col: 20, text: "true"}},
				{"send_queue", 77, 7, &node{kind: nScalar, file: "defaults.yaml", line: 77, col: 19, text: "1024"}},
				{"credits", 78, 7, &node{kind: nScalar, file: "defaults.yaml", line: 78, col: 16, text: "false"}},
			}}},
			{"personality", 79, 5, &node{kind: nMap, file: "defaults.yaml", line: 80, col: 7, keys: []entry{
				{"nak_latency", 80, 7, &node{kind: nScalar, file: "defaults.yaml", line: 80, col: 20, text: "0us"}},
				{"read_nak_latency", 81, 7, &node{kind: nScalar, file: "defaults.yaml", line: 81, col: 25, text: "0us"}},
				{"react_latency", 82, 7, &node{kind: nScalar, file: "defaults.yaml", line: 82, col: 22, text: "0us"}},
				{"ack_freq_log", 83, 7, &node{kind: nScalar, file: "defaults.yaml", line: 83, col: 21, text: "8"}},
				{"m_bit", 84, 7, &node{kind: nScalar, file: "defaults.yaml", line: 84, col: 14, text: "true"}},
				{"retry7_infinite", 85, 7, &node{kind: nScalar, file: "defaults.yaml", line: 85, col: 24, text: "false"}},
				{"nak_reload", 86, 7, &node{kind: nScalar, file: "defaults.yaml", line: 86, col: 19, text: "false"}},
				{"oos_behind_rnr", 87, 7, &node{kind: nScalar, file: "defaults.yaml", line: 87, col: 23, text: "false"}},
				{"read_gap_timeout", 88, 7, &node{kind: nScalar, file: "defaults.yaml", line: 88, col: 25, text: "false"}},
				{"probe_one", 89, 7, &node{kind: nScalar, file: "defaults.yaml", line: 89, col: 18, text: "false"}},
				{"nack_triggers_cnp", 90, 7, &node{kind: nScalar, file: "defaults.yaml", line: 90, col: 26, text: "false"}},
				{"cnp_scope", 91, 7, &node{kind: nScalar, file: "defaults.yaml", line: 91, col: 18, text: "qp"}},
				{"cnp_floor", 92, 7, &node{kind: nScalar, file: "defaults.yaml", line: 92, col: 18, text: "0us"}},
				{"timeout_max", 93, 7, &node{kind: nScalar, file: "defaults.yaml", line: 93, col: 20, text: "31"}},
				{"timeout_rule", 94, 7, &node{kind: nScalar, file: "defaults.yaml", line: 94, col: 21, text: "ibta"}},
				{"adp", 95, 7, &node{kind: nScalar, file: "defaults.yaml", line: 95, col: 12, text: "false"}},
				{"adp_profile", 96, 7, &node{kind: nMap, file: "defaults.yaml", line: 96, col: 20, keys: []entry{
					{"base", 96, 21, &node{kind: nScalar, file: "defaults.yaml", line: 96, col: 27, text: "4096ns"}},
					{"init_low", 96, 35, &node{kind: nScalar, file: "defaults.yaml", line: 96, col: 45, text: "10"}},
					{"init_range", 96, 49, &node{kind: nScalar, file: "defaults.yaml", line: 96, col: 61, text: "2"}},
					{"ranges", 96, 64, &node{kind: nSeq, file: "defaults.yaml", line: 96, col: 72, items: []*node{
						{kind: nSeq, file: "defaults.yaml", line: 96, col: 73, items: []*node{
							{kind: nScalar, file: "defaults.yaml", line: 96, col: 74, text: "10"},
							{kind: nScalar, file: "defaults.yaml", line: 96, col: 78, text: "14"},
						}},
					}}},
					{"start_index", 96, 84, &node{kind: nScalar, file: "defaults.yaml", line: 96, col: 97, text: "0"}},
					{"timeout_retry_num", 96, 100, &node{kind: nScalar, file: "defaults.yaml", line: 96, col: 119, text: "1"}},
					{"dec", 96, 122, &node{kind: nScalar, file: "defaults.yaml", line: 96, col: 127, text: "2"}},
					{"total", 96, 130, &node{kind: nScalar, file: "defaults.yaml", line: 96, col: 137, text: "0us"}},
				}}},
				{"slow_restart", 97, 7, &node{kind: nScalar, file: "defaults.yaml", line: 97, col: 21, text: "false"}},
				{"read_no_ack", 98, 7, &node{kind: nScalar, file: "defaults.yaml", line: 98, col: 20, text: "false"}},
				{"ack_before_replay", 99, 7, &node{kind: nScalar, file: "defaults.yaml", line: 99, col: 26, text: "false"}},
				{"reorder_buffer", 100, 7, &node{kind: nScalar, file: "defaults.yaml", line: 100, col: 23, text: "1024"}},
			}}},
		}}},
	}}},
}}

var asicsTree = node{kind: nMap, file: "asics.yaml", line: 5, col: 1, keys: []entry{
	{"generic", 5, 1, &node{kind: nMap, file: "asics.yaml", line: 6, col: 3, keys: []entry{
		{"summary", 6, 3, &node{kind: nScalar, file: "asics.yaml", line: 6, col: 12, text: "the defaults of the fabric file"}},
		{"layer", 7, 3, &node{kind: nMap, file: "asics.yaml", line: 7, col: 10, keys: []entry{
			{"buffer", 7, 11, &node{kind: nMap, file: "asics.yaml", line: 7, col: 19, keys: []entry{
				{"size", 7, 20, &node{kind: nScalar, file: "asics.yaml", line: 7, col: 26, text: "12MiB"}},
				{"cell", 7, 33, &node{kind: nScalar, file: "asics.yaml", line: 7, col: 39, text: "208B"}},
				{"slices", 7, 45, &node{kind: nScalar, file: "asics.yaml", line: 7, col: 53, text: "1"}},
			}}},
		}}},
	}}},
	{"td2", 8, 1, &node{kind: nMap, file: "asics.yaml", line: 9, col: 3, keys: []entry{
		{"summary", 9, 3, &node{kind: nScalar, file: "asics.yaml", line: 9, col: 12, text: "Trident2, 32 x 40G"}},
		{"layer", 10, 3, &node{kind: nMap, file: "asics.yaml", line: 11, col: 5, keys: []entry{
			{"buffer", 11, 5, &node{kind: nMap, file: "asics.yaml", line: 11, col: 13, keys: []entry{
				{"size", 11, 14, &node{kind: nScalar, file: "asics.yaml", line: 11, col: 20, text: "12766208B"}},
				{"cell", 11, 31, &node{kind: nScalar, file: "asics.yaml", line: 11, col: 37, text: "208B"}},
				{"slices", 11, 43, &node{kind: nScalar, file: "asics.yaml", line: 11, col: 51, text: "1"}},
				{"reserve_off", 11, 54, &node{kind: nScalar, file: "asics.yaml", line: 11, col: 67, text: "true"}},
			}}},
			{"pfc", 12, 5, &node{kind: nMap, file: "asics.yaml", line: 12, col: 10, keys: []entry{
				{"guaranteed", 12, 11, &node{kind: nScalar, file: "asics.yaml", line: 12, col: 23, text: "1248B"}},
				{"xon_offset", 12, 30, &node{kind: nScalar, file: "asics.yaml", line: 12, col: 42, text: "2496B"}},
			}}},
		}}},
	}}},
	{"th", 13, 1, &node{kind: nMap, file: "asics.yaml", line: 14, col: 3, keys: []entry{
		{"summary", 14, 3, &node{kind: nScalar, file: "asics.yaml", line: 14, col: 12, text: "Tomahawk, 4 memory slices; pool as in the public lossless profile"}},
		{"layer", 15, 3, &node{kind: nMap, file: "asics.yaml", line: 16, col: 5, keys: []entry{
			{"buffer", 16, 5, &node{kind: nMap, file: "asics.yaml", line: 16, col: 13, keys: []entry{
				{"size", 16, 14, &node{kind: nScalar, file: "asics.yaml", line: 16, col: 20, text: "10875072B"}},
				{"cell", 16, 31, &node{kind: nScalar, file: "asics.yaml", line: 16, col: 37, text: "208B"}},
				{"slices", 16, 43, &node{kind: nScalar, file: "asics.yaml", line: 16, col: 51, text: "4"}},
			}}},
			{"pfc", 17, 5, &node{kind: nMap, file: "asics.yaml", line: 17, col: 10, keys: []entry{
				{"guaranteed", 17, 11, &node{kind: nScalar, file: "asics.yaml", line: 17, col: 23, text: "1248B"}},
				{"xon_offset", 17, 30, &node{kind: nScalar, file: "asics.yaml", line: 17, col: 42, text: "2288B"}},
			}}},
		}}},
	}}},
	{"td3", 18, 1, &node{kind: nMap, file: "asics.yaml", line: 19, col: 3, keys: []entry{
		{"summary", 19, 3, &node{kind: nScalar, file: "asics.yaml", line: 19, col: 12, text: "Trident3"}},
		{"layer", 20, 3, &node{kind: nMap, file: "asics.yaml", line: 21, col: 5, keys: []entry{
			{"buffer", 21, 5, &node{kind: nMap, file: "asics.yaml", line: 21, col: 13, keys: []entry{
				{"size", 21, 14, &node{kind: nScalar, file: "asics.yaml", line: 21, col: 20, text: "32712448B"}},
				{"cell", 21, 31, &node{kind: nScalar, file: "asics.yaml", line: 21, col: 37, text: "256B"}},
				{"slices", 21, 43, &node{kind: nScalar, file: "asics.yaml", line: 21, col: 51, text: "1"}},
			}}},
			{"pfc", 22, 5, &node{kind: nMap, file: "asics.yaml", line: 22, col: 10, keys: []entry{
				{"xon_offset", 22, 11, &node{kind: nScalar, file: "asics.yaml", line: 22, col: 23, text: "4608B"}},
			}}},
		}}},
	}}},
	{"th2", 23, 1, &node{kind: nMap, file: "asics.yaml", line: 24, col: 3, keys: []entry{
		{"summary", 24, 3, &node{kind: nScalar, file: "asics.yaml", line: 24, col: 12, text: "Tomahawk2, 4 memory slices"}},
		{"layer", 25, 3, &node{kind: nMap, file: "asics.yaml", line: 26, col: 5, keys: []entry{
			{"buffer", 26, 5, &node{kind: nMap, file: "asics.yaml", line: 26, col: 13, keys: []entry{
				{"size", 26, 14, &node{kind: nScalar, file: "asics.yaml", line: 26, col: 20, text: "42349632B"}},
				{"cell", 26, 31, &node{kind: nScalar, file: "asics.yaml", line: 26, col: 37, text: "208B"}},
				{"slices", 26, 43, &node{kind: nScalar, file: "asics.yaml", line: 26, col: 51, text: "4"}},
			}}},
			{"pfc", 27, 5, &node{kind: nMap, file: "asics.yaml", line: 27, col: 10, keys: []entry{
				{"xon_offset", 27, 11, &node{kind: nScalar, file: "asics.yaml", line: 27, col: 23, text: "2496B"}},
			}}},
		}}},
	}}},
	{"th3", 28, 1, &node{kind: nMap, file: "asics.yaml", line: 29, col: 3, keys: []entry{
		{"summary", 29, 3, &node{kind: nScalar, file: "asics.yaml", line: 29, col: 12, text: "Tomahawk3"}},
		{"unverified", 30, 3, &node{kind: nSeq, file: "asics.yaml", line: 30, col: 15, items: []*node{
			{kind: nScalar, file: "asics.yaml", line: 30, col: 16, text: "buffer.size"},
			{kind: nScalar, file: "asics.yaml", line: 30, col: 29, text: "buffer.slices"},
		}}},
		{"layer", 31, 3, &node{kind: nMap, file: "asics.yaml", line: 32, col: 5, keys: []entry{
			{"buffer", 32, 5, &node{kind: nMap, file: "asics.yaml", line: 32, col: 13, keys: []entry{
				{"size", 32, 14, &node{kind: nScalar, file: "asics.yaml", line: 32, col: 20, text: "64MB"}},
				{"cell", 32, 26, &node{kind: nScalar, file: "asics.yaml", line: 32, col: 32, text: "254B"}},
				{"slices", 32, 38, &node{kind: nScalar, file: "asics.yaml", line: 32, col: 46, text: "1"}},
			}}},
			{"pfc", 33, 5, &node{kind: nMap, file: "asics.yaml", line: 33, col: 10, keys: []entry{
				{"xon_offset", 33, 11, &node{kind: nScalar, file: "asics.yaml", line: 33, col: 23, text: "3556B"}},
			}}},
		}}},
	}}},
	{"th4", 34, 1, &node{kind: nMap, file: "asics.yaml", line: 35, col: 3, keys: []entry{
		{"summary", 35, 3, &node{kind: nScalar, file: "asics.yaml", line: 35, col: 12, text: "Tomahawk4"}},
		{"unverified", 36, 3, &node{kind: nSeq, file: "asics.yaml", line: 36, col: 15, items: []*node{
			{kind: nScalar, file: "asics.yaml", line: 36, col: 16, text: "buffer.size"},
			{kind: nScalar, file: "asics.yaml", line: 36, col: 29, text: "buffer.slices"},
		}}},
		{"layer", 37, 3, &node{kind: nMap, file: "asics.yaml", line: 38, col: 5, keys: []entry{
			{"buffer", 38, 5, &node{kind: nMap, file: "asics.yaml", line: 38, col: 13, keys: []entry{
				{"size", 38, 14, &node{kind: nScalar, file: "asics.yaml", line: 38, col: 20, text: "113MB"}},
				{"cell", 38, 27, &node{kind: nScalar, file: "asics.yaml", line: 38, col: 33, text: "254B"}},
				{"slices", 38, 39, &node{kind: nScalar, file: "asics.yaml", line: 38, col: 47, text: "1"}},
			}}},
			{"pfc", 39, 5, &node{kind: nMap, file: "asics.yaml", line: 39, col: 10, keys: []entry{
				{"xon_offset", 39, 11, &node{kind: nScalar, file: "asics.yaml", line: 39, col: 23, text: "3556B"}},
			}}},
		}}},
	}}},
	{"th5", 40, 1, &node{kind: nMap, file: "asics.yaml", line: 41, col: 3, keys: []entry{
		{"summary", 41, 3, &node{kind: nScalar, file: "asics.yaml", line: 41, col: 12, text: "Tomahawk5; pool of 284502 cells as measured"}},
		{"layer", 42, 3, &node{kind: nMap, file: "asics.yaml", line: 43, col: 5, keys: []entry{
			{"buffer", 43, 5, &node{kind: nMap, file: "asics.yaml", line: 43, col: 13, keys: []entry{
				{"size", 43, 14, &node{kind: nScalar, file: "asics.yaml", line: 43, col: 20, text: "72263508B"}},
				{"cell", 43, 31, &node{kind: nScalar, file: "asics.yaml", line: 43, col: 37, text: "254B"}},
				{"slices", 43, 43, &node{kind: nScalar, file: "asics.yaml", line: 43, col: 51, text: "1"}},
			}}},
			{"pfc", 44, 5, &node{kind: nMap, file: "asics.yaml", line: 44, col: 10, keys: []entry{
				{"guaranteed", 44, 11, &node{kind: nScalar, file: "asics.yaml", line: 44, col: 23, text: "8636B"}},
				{"xon_offset", 44, 30, &node{kind: nScalar, file: "asics.yaml", line: 44, col: 42, text: "3556B"}},
			}}},
		}}},
	}}},
	{"spectrum", 45, 1, &node{kind: nMap, file: "asics.yaml", line: 46, col: 3, keys: []entry{
		{"summary", 46, 3, &node{kind: nScalar, file: "asics.yaml", line: 46, col: 12, text: "Spectrum"}},
		{"unverified", 47, 3, &node{kind: nSeq, file: "asics.yaml", line: 47, col: 15, items: []*node{
			{kind: nScalar, file: "asics.yaml", line: 47, col: 16, text: "buffer.size"},
		}}},
		{"layer", 48, 3, &node{kind: nMap, file: "asics.yaml", line: 48, col: 10, keys: []entry{
			{"buffer", 48, 11, &node{kind: nMap, file: "asics.yaml", line: 48, col: 19, keys: []entry{
				{"size", 48, 20, &node{kind: nScalar, file: "asics.yaml", line: 48, col: 26, text: "16MB"}},
				{"cell", 48, 32, &node{kind: nScalar, file: "asics.yaml", line: 48, col: 38, text: "96B"}},
				{"slices", 48, 43, &node{kind: nScalar, file: "asics.yaml", line: 48, col: 51, text: "1"}},
			}}},
		}}},
	}}},
	{"spectrum2", 49, 1, &node{kind: nMap, file: "asics.yaml", line: 50, col: 3, keys: []entry{
		{"summary", 50, 3, &node{kind: nScalar, file: "asics.yaml", line: 50, col: 12, text: "Spectrum-2"}},
		{"unverified", 51, 3, &node{kind: nSeq, file: "asics.yaml", line: 51, col: 15, items: []*node{
			{kind: nScalar, file: "asics.yaml", line: 51, col: 16, text: "buffer.size"},
		}}},
		{"layer", 52, 3, &node{kind: nMap, file: "asics.yaml", line: 52, col: 10, keys: []entry{
			{"buffer", 52, 11, &node{kind: nMap, file: "asics.yaml", line: 52, col: 19, keys: []entry{
				{"size", 52, 20, &node{kind: nScalar, file: "asics.yaml", line: 52, col: 26, text: "42MB"}},
				{"cell", 52, 32, &node{kind: nScalar, file: "asics.yaml", line: 52, col: 38, text: "144B"}},
				{"slices", 52, 44, &node{kind: nScalar, file: "asics.yaml", line: 52, col: 52, text: "1"}},
			}}},
		}}},
	}}},
	{"spectrum3", 53, 1, &node{kind: nMap, file: "asics.yaml", line: 54, col: 3, keys: []entry{
		{"summary", 54, 3, &node{kind: nScalar, file: "asics.yaml", line: 54, col: 12, text: "Spectrum-3"}},
		{"unverified", 55, 3, &node{kind: nSeq, file: "asics.yaml", line: 55, col: 15, items: []*node{
			{kind: nScalar, file: "asics.yaml", line: 55, col: 16, text: "buffer.size"},
		}}},
		{"layer", 56, 3, &node{kind: nMap, file: "asics.yaml", line: 56, col: 10, keys: []entry{
			{"buffer", 56, 11, &node{kind: nMap, file: "asics.yaml", line: 56, col: 19, keys: []entry{
				{"size", 56, 20, &node{kind: nScalar, file: "asics.yaml", line: 56, col: 26, text: "64MB"}},
				{"cell", 56, 32, &node{kind: nScalar, file: "asics.yaml", line: 56, col: 38, text: "144B"}},
				{"slices", 56, 44, &node{kind: nScalar, file: "asics.yaml", line: 56, col: 52, text: "1"}},
			}}},
		}}},
	}}},
	{"spectrum4", 57, 1, &node{kind: nMap, file: "asics.yaml", line: 58, col: 3, keys: []entry{
		{"summary", 58, 3, &node{kind: nScalar, file: "asics.yaml", line: 58, col: 12, text: "Spectrum-4"}},
		{"unverified", 59, 3, &node{kind: nSeq, file: "asics.yaml", line: 59, col: 15, items: []*node{
			{kind: nScalar, file: "asics.yaml", line: 59, col: 16, text: "buffer.size"},
		}}},
		{"layer", 60, 3, &node{kind: nMap, file: "asics.yaml", line: 60, col: 10, keys: []entry{
			{"buffer", 60, 11, &node{kind: nMap, file: "asics.yaml", line: 60, col: 19, keys: []entry{
				{"size", 60, 20, &node{kind: nScalar, file: "asics.yaml", line: 60, col: 26, text: "160MB"}},
				{"cell", 60, 33, &node{kind: nScalar, file: "asics.yaml", line: 60, col: 39, text: "192B"}},
				{"slices", 60, 45, &node{kind: nScalar, file: "asics.yaml", line: 60, col: 53, text: "1"}},
			}}},
		}}},
	}}},
	{"article-leaf", 61, 1, &node{kind: nMap, file: "asics.yaml", line: 62, col: 3, keys: []entry{
		{"summary", 62, 3, &node{kind: nScalar, file: "asics.yaml", line: 62, col: 12, text: "the article's leaf, 48 x 25G + 8 x 100G, Trident3"}},
		{"panel", 63, 3, &node{kind: nSeq, file: "asics.yaml", line: 63, col: 10, items: []*node{
			{kind: nMap, file: "asics.yaml", line: 63, col: 11, keys: []entry{
				{"rate", 63, 12, &node{kind: nScalar, file: "asics.yaml", line: 63, col: 18, text: "100Gbps"}},
				{"count", 63, 27, &node{kind: nScalar, file: "asics.yaml", line: 63, col: 34, text: "8"}},
			}},
			{kind: nMap, file: "asics.yaml", line: 63, col: 38, keys: []entry{
				{"rate", 63, 39, &node{kind: nScalar, file: "asics.yaml", line: 63, col: 45, text: "25Gbps"}},
				{"count", 63, 53, &node{kind: nScalar, file: "asics.yaml", line: 63, col: 60, text: "48"}},
			}},
		}}},
		{"layer", 64, 3, &node{kind: nMap, file: "asics.yaml", line: 65, col: 5, keys: []entry{
			{"latency", 65, 5, &node{kind: nScalar, file: "asics.yaml", line: 65, col: 14, text: "1us"}},
			{"buffer", 66, 5, &node{kind: nMap, file: "asics.yaml", line: 66, col: 13, keys: []entry{
				{"size", 66, 14, &node{kind: nScalar, file: "asics.yaml", line: 66, col: 20, text: "32MB"}},
				{"cell", 66, 26, &node{kind: nScalar, file: "asics.yaml", line: 66, col: 32, text: "256B"}},
				{"slices", 66, 38, &node{kind: nScalar, file: "asics.yaml", line: 66, col: 46, text: "1"}},
			}}},
			{"pfc", 67, 5, &node{kind: nMap, file: "asics.yaml", line: 67, col: 10, keys: []entry{
				{"guaranteed", 67, 11, &node{kind: nScalar, file: "asics.yaml", line: 67, col: 23, text: "0B"}},
				{"xon_offset", 67, 27, &node{kind: nScalar, file: "asics.yaml", line: 67, col: 39, text: "4608B"}},
			}}},
		}}},
	}}},
	{"article-spine", 68, 1, &node{kind: nMap, file: "asics.yaml", line: 69, col: 3, keys: []entry{
		{"summary", 69, 3, &node{kind: nScalar, file: "asics.yaml", line: 69, col: 12, text: "the article's spine, 64 x 100G, Tomahawk2"}},
		{"panel", 70, 3, &node{kind: nSeq, file: "asics.yaml", line: 70, col: 10, items: []*node{
			{kind: nMap, file: "asics.yaml", line: 70, col: 11, keys: []entry{
				{"rate", 70, 12, &node{kind: nScalar, file: "asics.yaml", line: 70, col: 18, text: "100Gbps"}},
				{"count", 70, 27, &node{kind: nScalar, file: "asics.yaml", line: 70, col: 34, text: "64"}},
			}},
		}}},
		{"layer", 71, 3, &node{kind: nMap, file: "asics.yaml", line: 72, col: 5, keys: []entry{
			{"latency", 72, 5, &node{kind: nScalar, file: "asics.yaml", line: 72, col: 14, text: "1us"}},
			{"buffer", 73, 5, &node{kind: nMap, file: "asics.yaml", line: 73, col: 13, keys: []entry{
				{"size", 73, 14, &node{kind: nScalar, file: "asics.yaml", line: 73, col: 20, text: "42MB"}},
				{"cell", 73, 26, &node{kind: nScalar, file: "asics.yaml", line: 73, col: 32, text: "208B"}},
				{"slices", 73, 38, &node{kind: nScalar, file: "asics.yaml", line: 73, col: 46, text: "1"}},
			}}},
			{"pfc", 74, 5, &node{kind: nMap, file: "asics.yaml", line: 74, col: 10, keys: []entry{
				{"guaranteed", 74, 11, &node{kind: nScalar, file: "asics.yaml", line: 74, col: 23, text: "0B"}},
				{"xon_offset", 74, 27, &node{kind: nScalar, file: "asics.yaml", line: 74, col: 39, text: "2496B"}},
			}}},
		}}},
	}}},
}}

var nicsTree = node{kind: nMap, file: "nics.yaml", line: 4, col: 1, keys: []entry{
	{"generic", 4, 1, &node{kind: nMap, file: "nics.yaml", line: 5, col: 3, keys: []entry{
		{"summary", 5, 3, &node{kind: nScalar, file: "nics.yaml", line: 5, col: 12, text: "the standard, with no latency of its own"}},
		{"layer", 6, 3, &node{kind: nMap, file: "nics.yaml", line: 6, col: 10}},
	}}},
	{"cx4lx", 7, 1, &node{kind: nMap, file: "nics.yaml", line: 8, col: 3, keys: []entry{
		{"summary", 8, 3, &node{kind: nScalar, file: "nics.yaml", line: 8, col: 12, text: "ConnectX-4 Lx"}},
		{"unverified", 9, 3, &node{kind: nSeq, file: "nics.yaml", line: 9, col: 15, items: []*node{
			{kind: nScalar, file: "nics.yaml", line: 9, col: 16, text: "nak_latency"},
			{kind: nScalar, file: "nics.yaml", line: 9, col: 29, text: "read_nak_latency"},
			{kind: nScalar, file: "nics.yaml", line: 9, col: 47, text: "react_latency"},
			{kind: nScalar, file: "nics.yaml", line: 9, col: 62, text: "rpg_*"},
		}}},
		{"layer", 10, 3, &node{kind: nMap, file: "nics.yaml", line: 11, col: 5, keys: []entry{
			{"dcqcn", 11, 5, &node{kind: nMap, file: "nics.yaml", line: 11, col: 12, keys: []entry{
				{"preset", 11, 13, &node{kind: nScalar, file: "nics.yaml", line: 11, col: 21, text: "mlx5"}},
			}}},
			{"personality", 12, 5, &node{kind: nMap, file: "nics.yaml", line: 12, col: 18, keys: []entry{
				{"nak_latency", 12, 19, &node{kind: nScalar, file: "nics.yaml", line: 12, col: 32, text: "2us"}},
				{"read_nak_latency", 12, 37, &node{kind: nScalar, file: "nics.yaml", line: 12, col: 55, text: "150us"}},
				{"react_latency", 12, 62, &node{kind: nScalar, file: "nics.yaml", line: 12, col: 77, text: "200us"}},
				{"cnp_scope", 12, 84, &node{kind: nScalar, file: "nics.yaml", line: 12, col: 95, text: "dst-ip"}},
			}}},
		}}},
	}}},
	{"cx5", 13, 1, &node{kind: nMap, file: "nics.yaml", line: 14, col: 3, keys: []entry{
		{"summary", 14, 3, &node{kind: nScalar, file: "nics.yaml", line: 14, col: 12, text: "ConnectX-5"}},
		{"unverified", 15, 3, &node{kind: nSeq, file: "nics.yaml", line: 15, col: 15, items: []*node{
			{kind: nScalar, file: "nics.yaml", line: 15, col: 16, text: "nak_latency"},
			{kind: nScalar, file: "nics.yaml", line: 15, col: 29, text: "read_nak_latency"},
			{kind: nScalar, file: "nics.yaml", line: 15, col: 47, text: "react_latency"},
			{kind: nScalar, file: "nics.yaml", line: 15, col: 62, text: "rpg_*"},
		}}},
		{"layer", 16, 3, &node{kind: nMap, file: "nics.yaml", line: 17, col: 5, keys: []entry{
			{"dcqcn", 17, 5, &node{kind: nMap, file: "nics.yaml", line: 17, col: 12, keys: []entry{
				{"preset", 17, 13, &node{kind: nScalar, file: "nics.yaml", line: 17, col: 21, text: "mlx5"}},
			}}},
			{"personality", 18, 5, &node{kind: nMap, file: "nics.yaml", line: 18, col: 18, keys: []entry{
				{"nak_latency", 18, 19, &node{kind: nScalar, file: "nics.yaml", line: 18, col: 32, text: "2us"}},
				{"read_nak_latency", 18, 37, &node{kind: nScalar, file: "nics.yaml", line: 18, col: 55, text: "2us"}},
				{"react_latency", 18, 60, &node{kind: nScalar, file: "nics.yaml", line: 18, col: 75, text: "4us"}},
				{"cnp_scope", 18, 80, &node{kind: nScalar, file: "nics.yaml", line: 18, col: 91, text: "port"}},
				{"nack_triggers_cnp", 18, 97, &node{kind: nScalar, file: "nics.yaml", line: 18, col: 116, text: "true"}},
				{"slow_restart", 18, 122, &node{kind: nScalar, file: "nics.yaml", line: 18, col: 136, text: "true"}},
			}}},
		}}},
	}}},
	{"cx6dx", 19, 1, &node{kind: nMap, file: "nics.yaml", line: 20, col: 3, keys: []entry{
		{"summary", 20, 3, &node{kind: nScalar, file: "nics.yaml", line: 20, col: 12, text: "ConnectX-6 Dx"}},
		{"unverified", 21, 3, &node{kind: nSeq, file: "nics.yaml", line: 21, col: 15, items: []*node{
			{kind: nScalar, file: "nics.yaml", line: 21, col: 16, text: "nak_latency"},
			{kind: nScalar, file: "nics.yaml", line: 21, col: 29, text: "read_nak_latency"},
			{kind: nScalar, file: "nics.yaml", line: 21, col: 47, text: "react_latency"},
			{kind: nScalar, file: "nics.yaml", line: 21, col: 62, text: "rpg_*"},
		}}},
		{"layer", 22, 3, &node{kind: nMap, file: "nics.yaml", line: 23, col: 5, keys: []entry{
			{"dcqcn", 23, 5, &node{kind: nMap, file: "nics.yaml", line: 23, col: 12, keys: []entry{
				{"preset", 23, 13, &node{kind: nScalar, file: "nics.yaml", line: 23, col: 21, text: "mlx5"}},
			}}},
			{"personality", 24, 5, &node{kind: nMap, file: "nics.yaml", line: 24, col: 18, keys: []entry{
				{"nak_latency", 24, 19, &node{kind: nScalar, file: "nics.yaml", line: 24, col: 32, text: "2us"}},
				{"read_nak_latency", 24, 37, &node{kind: nScalar, file: "nics.yaml", line: 24, col: 55, text: "2us"}},
				{"react_latency", 24, 60, &node{kind: nScalar, file: "nics.yaml", line: 24, col: 75, text: "4us"}},
				{"cnp_scope", 24, 80, &node{kind: nScalar, file: "nics.yaml", line: 24, col: 91, text: "port"}},
				{"nack_triggers_cnp", 24, 97, &node{kind: nScalar, file: "nics.yaml", line: 24, col: 116, text: "true"}},
				{"slow_restart", 24, 122, &node{kind: nScalar, file: "nics.yaml", line: 24, col: 136, text: "true"}},
			}}},
		}}},
	}}},
	{"e810", 25, 1, &node{kind: nMap, file: "nics.yaml", line: 26, col: 3, keys: []entry{
		{"summary", 26, 3, &node{kind: nScalar, file: "nics.yaml", line: 26, col: 12, text: "Intel E810"}},
		{"unverified", 27, 3, &node{kind: nSeq, file: "nics.yaml", line: 27, col: 15, items: []*node{
			{kind: nScalar, file: "nics.yaml", line: 27, col: 16, text: "nak_latency"},
			{kind: nScalar, file: "nics.yaml", line: 27, col: 29, text: "read_nak_latency"},
			{kind: nScalar, file: "nics.yaml", line: 27, col: 47, text: "react_latency"},
			{kind: nScalar, file: "nics.yaml", line: 27, col: 62, text: "cnp_floor"},
			{kind: nScalar, file: "nics.yaml", line: 27, col: 73, text: "m_bit"},
		}}},
		{"layer", 28, 3, &node{kind: nMap, file: "nics.yaml", line: 29, col: 5, keys: []entry{
			{"dcqcn", 29, 5, &node{kind: nMap, file: "nics.yaml", line: 29, col: 12, keys: []entry{
				{"preset", 29, 13, &node{kind: nScalar, file: "nics.yaml", line: 29, col: 21, text: "paper"}},
			}}},
			{"personality", 30, 5, &node{kind: nMap, file: "nics.yaml", line: 30, col: 18, keys: []entry{
				{"nak_latency", 30, 19, &node{kind: nScalar, file: "nics.yaml", line: 30, col: 32, text: "10us"}},
				{"read_nak_latency", 30, 38, &node{kind: nScalar, file: "nics.yaml", line: 30, col: 56, text: "83ms"}},
				{"react_latency", 30, 62, &node{kind: nScalar, file: "nics.yaml", line: 30, col: 77, text: "80us"}},
				{"cnp_scope", 30, 83, &node{kind: nScalar, file: "nics.yaml", line: 30, col: 94, text: "qp"}},
				{"cnp_floor", 30, 98, &node{kind: nScalar, file: "nics.yaml", line: 30, col: 109, text: "50us"}},
				{"m_bit", 30, 115, &node{kind: nScalar, file: "nics.yaml", line: 30, col: 122, text: "false"}},
			}}},
		}}},
	}}},
	{"rxe", 31, 1, &node{kind: nMap, file: "nics.yaml", line: 32, col: 3, keys: []entry{
		{"summary", 32, 3, &node{kind: nScalar, file: "nics.yaml", line: 32, col: 12, text: "Linux software RoCE"}},
		{"unverified", 33, 3, &node{kind: nSeq, file: "nics.yaml", line: 33, col: 15, items: []*node{
			{kind: nScalar, file: "nics.yaml", line: 33, col: 16, text: "nak_latency"},
			{kind: nScalar, file: "nics.yaml", line: 33, col: 29, text: "react_latency"},
		}}},
		{"layer", 34, 3, &node{kind: nMap, file: "nics.yaml", line: 35, col: 5, keys: []entry{
			{"congestion", 35, 5, &node{kind: nScalar, file: "nics.yaml", line: 35, col: 17, text: "none"}},
			{"qp", 36, 5, &node{kind: nMap, file: "nics.yaml", line: 36, col: 9, keys: []entry{
				{"dup_ack", 36, 10, &node{kind: nScalar, file: "nics.yaml", line: 36, col: 19, text: "all"}},
			}}},
			{"personality", 37, 5, &node{kind: nMap, file: "nics.yaml", line: 37, col: 18, keys: []entry{
				{"nak_latency", 37, 19, &node{kind: nScalar, file: "nics.yaml", line: 37, col: 32, text: "20us"}},
				{"react_latency", 37, 38, &node{kind: nScalar, file: "nics.yaml", line: 37, col: 53, text: "20us"}},
				{"ack_freq_log", 37, 59, &node{kind: nScalar, file: "nics.yaml", line: 37, col: 73, text: "6"}},
				{"m_bit", 37, 76, &node{kind: nScalar, file: "nics.yaml", line: 37, col: 83, text: "false"}},
				{"retry7_infinite", 37, 90, &node{kind: nScalar, file: "nics.yaml", line: 37, col: 107, text: "true"}},
				{"oos_behind_rnr", 37, 113, &node{kind: nScalar, file: "nics.yaml", line: 37, col: 129, text: "true"}},
				{"read_gap_timeout", 37, 135, &node{kind: nScalar, file: "nics.yaml", line: 37, col: 153, text: "true"}},
			}}},
		}}},
	}}},
	{"qib", 38, 1, &node{kind: nMap, file: "nics.yaml", line: 39, col: 3, keys: []entry{
		{"summary", 39, 3, &node{kind: nScalar, file: "nics.yaml", line: 39, col: 12, text: "QLogic InfiniBand state machine"}},
		{"layer", 40, 3, &node{kind: nMap, file: "nics.yaml", line: 41, col: 5, keys: []entry{
			{"congestion", 41, 5, &node{kind: nScalar, file: "nics.yaml", line: 41, col: 17, text: "none"}},
			{"qp", 42, 5, &node{kind: nMap, file: "nics.yaml", line: 42, col: 9, keys: []entry{
				{"credits", 42, 10, &node{kind: nScalar, file: "nics.yaml", line: 42, col: 19, text: "true"}},
			}}},
			{"personality", 43, 5, &node{kind: nMap, file: "nics.yaml", line: 43, col: 18, keys: []entry{
				{"nak_reload", 43, 19, &node{kind: nScalar, file: "nics.yaml", line: 43, col: 31, text: "true"}},
				{"probe_one", 43, 37, &node{kind: nScalar, file: "nics.yaml", line: 43, col: 48, text: "true"}},
			}}},
		}}},
	}}},
	{"article", 44, 1, &node{kind: nMap, file: "nics.yaml", line: 45, col: 3, keys: []entry{
		{"summary", 45, 3, &node{kind: nScalar, file: "nics.yaml", line: 45, col: 12, text: "the article's statements taken literally (transport §4)"}},
		{"layer", 46, 3, &node{kind: nMap, file: "nics.yaml", line: 47, col: 5, keys: []entry{
			{"qp", 47, 5, &node{kind: nMap, file: "nics.yaml", line: 47, col: 9, keys: []entry{
				{"timeout_mode", 47, 10, &node{kind: nScalar, file: "nics.yaml", line: 47, col: 24, text: "article"}},
				{"timeout_floor", 47, 33, &node{kind: nScalar, file: "nics.yaml", line: 47, col: 48, text: "16384ns"}},
				{"rnr_decode", 47, 57, &node{kind: nScalar, file: "nics.yaml", line: 47, col: 69, text: "article-linear"}},
			}}},
		}}},
	}}},
}}

var dcqcnTree = node{kind: nMap, file: "dcqcn.yaml", line: 4, col: 1, keys: []entry{
	{"paper", 4, 1, &node{kind: nMap, file: "dcqcn.yaml", line: 5, col: 3, keys: []entry{
		{"dce_tcp_g", 5, 4, &node{kind: nScalar, file: "dcqcn.yaml", line: 5, col: 15, text: "1020"}},
		{"dce_tcp_rtt", 5, 21, &node{kind: nScalar, file: "dcqcn.yaml", line: 5, col: 34, text: "55us"}},
		{"initial_alpha_value", 5, 40, &node{kind: nScalar, file: "dcqcn.yaml", line: 5, col: 61, text: "1024"}},
		{"min_time_between_cnps", 5, 67, &node{kind: nScalar, file: "dcqcn.yaml", line: 5, col: 90, text: "50us"}},
		{"rpg_time_reset", 5, 96, &node{kind: nScalar, file: "dcqcn.yaml", line: 5, col: 112, text: "55us"}},
		{"rpg_byte_reset", 5, 118, &node{kind: nScalar, file: "dcqcn.yaml", line: 5, col: 134, text: "10MB"}},
		{"rpg_threshold", 5, 140, &node{kind: nScalar, file: "dcqcn.yaml", line: 5, col: 155, text: "5"}},
		{"rpg_ai_rate", 5, 158, &node{kind: nScalar, file: "dcqcn.yaml", line: 5, col: 171, text: "40Mbps"}},
		{"rpg_hai_rate", 5, 179, &node{kind: nScalar, file: "dcqcn.yaml", line: 5, col: 193, text: "200Mbps"}},
		{"rpg_min_rate", 5, 202, &node{kind: nScalar, file: "dcqcn.yaml", line: 5, col: 216, text: "100Mbps"}},
		{"rpg_gd", 5, 225, &node{kind: nScalar, file: "dcqcn.yaml", line: 5, col: 233, text: "11"}},
		{"rpg_min_dec_fac", 5, 237, &node{kind: nScalar, file: "dcqcn.yaml", line: 5, col: 254, text: "50"}},
		{"rate_reduce_monitor_period", 5, 258, &node{kind: nScalar, file: "dcqcn.yaml", line: 5, col: 286, text: "0us"}},
		{"clamp_tgt_rate", 5, 291, &node{kind: nScalar, file: "dcqcn.yaml", line: 5, col: 307, text: "true"}},
		{"clamp_tgt_rate_after_time_inc", 5, 313, &node{kind: nScalar, file: "dcqcn.yaml", line: 5, col: 344, text: "true"}},
		{"rate_to_set_on_first_cnp", 5, 350, &node{kind: nScalar, file: "dcqcn.yaml", line: 5, col: 376, text: "0bps"}},
	}}},
	{"mlx5", 6, 1, &node{kind: nMap, file: "dcqcn.yaml", line: 7, col: 3, keys: []entry{
		{"dce_tcp_g", 7, 4, &node{kind: nScalar, file: "dcqcn.yaml", line: 7, col: 15, text: "1019"}},
		{"dce_tcp_rtt", 7, 21, &node{kind: nScalar, file: "dcqcn.yaml", line: 7, col: 34, text: "1us"}},
		{"initial_alpha_value", 7, 39, &node{kind: nScalar, file: "dcqcn.yaml", line: 7, col: 60, text: "1023"}},
		{"min_time_between_cnps", 7, 66, &node{kind: nScalar, file: "dcqcn.yaml", line: 7, col: 89, text: "4us"}},
		{"rpg_time_reset", 7, 94, &node{kind: nScalar, file: "dcqcn.yaml", line: 7, col: 110, text: "300us"}},
		{"rpg_byte_reset", 7, 117, &node{kind: nScalar, file: "dcqcn.yaml", line: 7, col: 133, text: "2097088B"}},
		{"rpg_threshold", 7, 143, &node{kind: nScalar, file: "dcqcn.yaml", line: 7, col: 158, text: "1"}},
		{"rpg_ai_rate", 7, 161, &node{kind: nScalar, file: "dcqcn.yaml", line: 7, col: 174, text: "5Mbps"}},
		{"rpg_hai_rate", 7, 181, &node{kind: nScalar, file: "dcqcn.yaml", line: 7, col: 195, text: "50Mbps"}},
		{"rpg_min_rate", 7, 203, &node{kind: nScalar, file: "dcqcn.yaml", line: 7, col: 217, text: "1Mbps"}},
		{"rpg_gd", 7, 224, &node{kind: nScalar, file: "dcqcn.yaml", line: 7, col: 232, text: "11"}},
		{"rpg_min_dec_fac", 7, 236, &node{kind: nScalar, file: "dcqcn.yaml", line: 7, col: 253, text: "50"}},
		{"rate_reduce_monitor_period", 7, 257, &node{kind: nScalar, file: "dcqcn.yaml", line: 7, col: 285, text: "4us"}},
		{"clamp_tgt_rate", 7, 290, &node{kind: nScalar, file: "dcqcn.yaml", line: 7, col: 306, text: "false"}},
		{"clamp_tgt_rate_after_time_inc", 7, 313, &node{kind: nScalar, file: "dcqcn.yaml", line: 7, col: 344, text: "true"}},
		{"rate_to_set_on_first_cnp", 7, 350, &node{kind: nScalar, file: "dcqcn.yaml", line: 7, col: 376, text: "0bps"}},
	}}},
	{"conweave", 8, 1, &node{kind: nMap, file: "dcqcn.yaml", line: 9, col: 3, keys: []entry{
		{"dce_tcp_g", 9, 4, &node{kind: nScalar, file: "dcqcn.yaml", line: 9, col: 15, text: "1020"}},
		{"dce_tcp_rtt", 9, 21, &node{kind: nScalar, file: "dcqcn.yaml", line: 9, col: 34, text: "1us"}},
		{"initial_alpha_value", 9, 39, &node{kind: nScalar, file: "dcqcn.yaml", line: 9, col: 60, text: "1024"}},
		{"min_time_between_cnps", 9, 66, &node{kind: nScalar, file: "dcqcn.yaml", line: 9, col: 89, text: "4us"}},
		{"rpg_time_reset", 9, 94, &node{kind: nScalar, file: "dcqcn.yaml", line: 9, col: 110, text: "300us"}},
		{"rpg_byte_reset", 9, 117, &node{kind: nScalar, file: "dcqcn.yaml", line: 9, col: 133, text: "0B"}},
		{"rpg_threshold", 9, 137, &node{kind: nScalar, file: "dcqcn.yaml", line: 9, col: 152, text: "1"}},
		{"rpg_ai_rate", 9, 155, &node{kind: nScalar, file: "dcqcn.yaml", line: 9, col: 168, text: "5Mbps"}},
		{"rpg_hai_rate", 9, 175, &node{kind: nScalar, file: "dcqcn.yaml", line: 9, col: 189, text: "50Mbps"}},
		{"rpg_min_rate", 9, 197, &node{kind: nScalar, file: "dcqcn.yaml", line: 9, col: 211, text: "100Mbps"}},
		{"rpg_gd", 9, 220, &node{kind: nScalar, file: "dcqcn.yaml", line: 9, col: 228, text: "11"}},
		{"rpg_min_dec_fac", 9, 232, &node{kind: nScalar, file: "dcqcn.yaml", line: 9, col: 249, text: "50"}},
		{"rate_reduce_monitor_period", 9, 253, &node{kind: nScalar, file: "dcqcn.yaml", line: 9, col: 281, text: "4us"}},
		{"clamp_tgt_rate", 9, 286, &node{kind: nScalar, file: "dcqcn.yaml", line: 9, col: 302, text: "false"}},
		{"clamp_tgt_rate_after_time_inc", 9, 309, &node{kind: nScalar, file: "dcqcn.yaml", line: 9, col: 340, text: "false"}},
		{"rate_to_set_on_first_cnp", 9, 347, &node{kind: nScalar, file: "dcqcn.yaml", line: 9, col: 373, text: "0bps"}},
	}}},
}}
