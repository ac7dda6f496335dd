internal import ConnectChannels
internal import SwiftProtobuf

extension StatisticsTable.Counted {
  /// What reports say of a cluster.
  var message: Envoy_Config_Endpoint_V3_ClusterStats {
    var message = Envoy_Config_Endpoint_V3_ClusterStats()
    message.clusterName = self.key.cluster
    message.clusterServiceName = self.key.service
    message.upstreamLocalityStats = self.counts.zones.sorted { $0.key < $1.key }
      .compactMap { zone, counts in
        if counts.isEmpty { return nil }
        var stats = Envoy_Config_Endpoint_V3_UpstreamLocalityStats()
        stats.locality = (self.localities[zone] ?? XDSLocality()).message
        stats.totalIssuedRequests = counts.issued
        stats.totalSuccessfulRequests = counts.succeeded
        stats.totalErrorRequests = counts.failed
        stats.totalRequestsInProgress = counts.inFlight
        return stats
      }
    for (category, count) in self.counts.drops.sorted(by: { $0.key < $1.key }) where count > 0 {
      var drop = Envoy_Config_Endpoint_V3_ClusterStats.DroppedRequests()
      drop.category = category
      drop.droppedCount = count
      message.droppedRequests.append(drop)
    }
    // Calls over the limit have no category.
    message.totalDroppedRequests = self.counts.drops.values.reduce(self.counts.refused, +)
    let (seconds, attoseconds) = self.interval.components
    message.loadReportInterval.seconds = seconds
    message.loadReportInterval.nanos = Int32(attoseconds / 1_000_000_000)
    return message
  }
}

extension CallStatistics.Counts {
  /// Whether nothing was counted, and no call is in flight.
  var isEmpty: Bool {
    self.refused == 0 && self.drops.values.allSatisfy { $0 == 0 } && self.zones.values.allSatisfy(\.isEmpty)
  }
}

extension CallStatistics.Counts.Zone {
  fileprivate var isEmpty: Bool { self == CallStatistics.Counts.Zone() }
}

extension XDSLocality {
  fileprivate var message: Envoy_Config_Core_V3_Locality {
    var message = Envoy_Config_Core_V3_Locality()
    message.region = self.region
    message.zone = self.zone
    message.subZone = self.subZone
    return message
  }
}
