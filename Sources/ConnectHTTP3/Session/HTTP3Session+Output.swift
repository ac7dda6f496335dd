internal import CNghttp3
internal import CNgtcp2
internal import NIOCore

extension HTTP3Session {
  /// How many pieces of a body one packet is made of at most.
  private static let maximumPieces = 16

  /// Puts datagrams into ``output``: as many as the peer and the network take now, and about `limit` bytes at most.
  /// What is left is due at ``expiry``, or when the peer acknowledges.
  ///
  /// - Returns: Whether `limit` was what stopped it, so that there may be more.
  func fillOutput(limit: Int, now: UInt64) -> Bool {
    self.output.recycle()
    guard let connection = self.connection else { return false }
    self.http.retryBlockedStreams()
    let quantum = min(limit, max(ngtcp2_conn_get_send_quantum(connection.pointer), self.datagramSize.limit))
    // Before the round trip is known, pacing would assume a third of a second and hold up the first request.
    let isPaced = self.isEstablished
    let inFlight = self.unansweredSince == nil ? connection.bytesInFlight : 0
    defer {
      if self.connection != nil, !self.output.isEmpty {
        if isPaced { ngtcp2_conn_update_pkt_tx_time(connection.pointer, now) }
        // An unanswered probe means nothing.
        if self.unansweredSince == nil, connection.bytesInFlight > inFlight + self.output.probeBytes {
          self.unansweredSince = now
        }
      }
    }
    var isMore = true
    while isMore, self.ending == nil {
      guard self.output.byteCount < quantum else { return quantum == limit }
      isMore =
        self.output.appendDatagram(capacity: self.datagramSize.limit) { bytes in
          self.writeDatagram(into: bytes, connection, now: now)
        } > 0
    }
    return false
  }

  private func writeDatagram(
    into bytes: UnsafeMutableRawBufferPointer,
    _ connection: NGTCP2Connection,
    now: UInt64
  ) -> HTTP3Output.Written {
    withUnsafeTemporaryAllocation(of: nghttp3_vec.self, capacity: Self.maximumPieces) { pieces in
      pieces.initialize(repeating: nghttp3_vec())
      while true {
        var id: Int64 = -1
        var isEnd: Int32 = 0
        var pieceCount = 0
        if let http = self.http.handle, !connection.isWindowClosed {
          let result = nghttp3_conn_writev_stream(http.pointer, &id, &isEnd, pieces.baseAddress, pieces.count)
          guard result >= 0 else {
            self.end(httpError: Int32(truncatingIfNeeded: result))
            return HTTP3Output.Written()
          }
          pieceCount = Int(result)
        }
        var ecn: UInt32 = 0
        var taken: ngtcp2_ssize = -1
        var flags = UInt32(NGTCP2_WRITE_STREAM_FLAG_MORE)
        if isEnd != 0 { flags |= UInt32(NGTCP2_WRITE_STREAM_FLAG_FIN) }
        // The two libraries' pieces are the same: an address and a length.
        let written = UnsafeRawPointer(pieces.baseAddress).map { pieces in
          connect_ngtcp2_write(
            connection.pointer,
            &ecn,
            bytes.baseAddress?.assumingMemoryBound(to: UInt8.self),
            bytes.count,
            &taken,
            flags,
            id,
            pieces.assumingMemoryBound(to: ngtcp2_vec.self),
            pieceCount,
            now
          )
        }
        switch Int32(truncatingIfNeeded: written ?? 0) {
        case NGTCP2_ERR_STREAM_DATA_BLOCKED:
          self.http.streamIsBlocked(id)
        case NGTCP2_ERR_STREAM_SHUT_WR, NGTCP2_ERR_STREAM_NOT_FOUND:
          self.http.peerWantsNoMore(ofStream: id)
        case NGTCP2_ERR_WRITE_MORE:
          self.didWrite(taken, of: pieces[..<pieceCount], isEnd: isEnd != 0, ofStream: id)
        case let error where error < 0:
          self.end(transportError: error)
          return HTTP3Output.Written()
        case let count:
          if self.tls.isFinished { self.hasWrittenSince = true }
          if taken >= 0 { self.didWrite(taken, of: pieces[..<pieceCount], isEnd: isEnd != 0, ofStream: id) }
          return HTTP3Output.Written(
            count: Int(count),
            ecn: ecn,
            isProbe: count > connection.pathDatagramSize
          )
        }
        guard self.ending == nil else { return HTTP3Output.Written() }
      }
    }
  }

  private func didWrite(
    _ count: Int,
    of pieces: Slice<UnsafeMutableBufferPointer<nghttp3_vec>>,
    isEnd: Bool,
    ofStream id: Int64
  ) {
    guard let http = self.http.handle, id >= 0 else { return }
    var result = nghttp3_conn_add_write_offset(http.pointer, id, count)
    if let stream = self.http.streams[id] {
      stream.request.isHeaderSent = true
      // The end goes along with the last byte.
      if isEnd { stream.request.isEndSent = count == pieces.reduce(0) { $0 + $1.len } }
      if isEnd, stream.request.isEndWaiting {
        stream.request.isEndWaiting = false
        if result == 0 {
          result = nghttp3_conn_add_ack_offset(http.pointer, id, stream.request.heldAcknowledgement)
        }
      }
    }
    if result != 0 { self.end(httpError: result) }
  }
}
