internal import Synchronization

/// The calls of a cassette, each with its place, in the order in which they began. A call answers one asked call.
final class CassetteTracks: Sendable {
  struct Track: Sendable {
    var exchange: RecordedExchange
    var script: ExchangeScript
    var isUsed: Bool
  }

  /// Nil for calls that are in flight.
  private let tracks = Mutex<[Track?]>([])

  /// The calls that have ended.
  var ended: [(index: Int, track: Track)] {
    self.tracks.withLock { tracks in
      tracks.enumerated().compactMap { index, track in track.map { (index, $0) } }
    }
  }

  /// - Parameter track: Nil if the call begins.
  @discardableResult
  func append(_ track: Track?) -> Int {
    self.tracks.withLock { tracks in
      tracks.append(track)
      return tracks.count - 1
    }
  }

  func end(_ index: Int, _ track: Track) { self.tracks.withLock { $0[index] = track } }

  func isFree(_ index: Int) -> Bool { self.tracks.withLock { $0[index]?.isUsed == false } }

  /// Claims a recorded call for an asked call.
  ///
  /// - Returns: False if another call has claimed it.
  func claim(_ index: Int) -> Bool {
    self.tracks.withLock { tracks in
      guard tracks[index]?.isUsed == false else { return false }
      tracks[index]?.isUsed = true
      return true
    }
  }

  /// Gives a claimed call back, since it does not match after all.
  func release(_ index: Int) {
    self.tracks.withLock { $0[index]?.isUsed = false }
  }
}
