internal import CNghttp3
internal import CNgtcp2
internal import Connect
internal import NIOCore

// MARK: - What libngtcp2 finds

extension HTTP3Layer {
  func didReceive(_ data: UnsafeBufferPointer<UInt8>, isEnd: Bool, onStream id: Int64) -> Int32 {
    guard let handle = self.handle, let connection = self.connection else {
      return NGTCP2_ERR_CALLBACK_FAILURE
    }
    if let stream = self.streams[id], stream.response.isMalformed {
      connection.extendWindows(ofStream: id, by: data.count)
      return 0
    }
    let consumed = nghttp3_conn_read_stream(handle.pointer, id, data.baseAddress, data.count, isEnd ? 1 : 0)
    guard consumed >= 0 else {
      let error = Int32(truncatingIfNeeded: consumed)
      if let stream = self.streams[id], let failure = HTTP3Responses.failure(of: stream, libraryError: error)
      {
        // The rest of it is skipped; other streams go on.
        stream.response.isMalformed = true
        connection.extendWindows(ofStream: id, by: data.count)
        self.events.append(.failed(stream, failure, .messageError))
        return 0
      }
      return self.fail(error, onStream: id)
    }
    // `consumed` does not count the content of DATA frames.
    connection.extendWindows(ofStream: id, by: consumed)
    return 0
  }

  func didReceiveBody(_ bytes: UnsafeRawBufferPointer, ofStream id: Int64, _ stream: HTTP3Stream?) {
    guard let stream, stream.handler != nil, !stream.isReset else {
      self.connection?.extendWindows(ofStream: id, by: bytes.count)
      return
    }
    // The connection's window is for all streams, so what one of them holds must not use it up.
    self.connection?.extendWindow(by: bytes.count)
    stream.response.unconsumed += bytes.count
    if stream.response.inbox.readableBytes == 0 { self.events.append(.bytes(stream)) }
    stream.response.inbox.writeBytes(bytes)
  }

  /// libnghttp3 0.8 forgets an unsent end without data when it hears that all before it was acknowledged. So the
  /// acknowledgement is held back until the end is sent.
  func peerDidAcknowledge(_ count: UInt64, ofStream id: Int64) -> Int32 {
    guard let handle = self.handle else { return 0 }
    if let stream = self.streams[id], stream.request.isEndWaiting {
      stream.request.heldAcknowledgement += count
      return 0
    }
    let result = nghttp3_conn_add_ack_offset(handle.pointer, id, count)
    return result == 0 || result == NGHTTP3_ERR_STREAM_NOT_FOUND ? 0 : self.fail(result)
  }

  func streamDidClose(_ id: Int64, _ code: HTTP3ErrorCode) -> Int32 {
    if let handle = self.handle {
      let result = nghttp3_conn_close_stream(handle.pointer, id, code.rawValue)
      guard result == 0 || result == NGHTTP3_ERR_STREAM_NOT_FOUND else {
        return self.fail(result, onStream: id)
      }
    }
    if let stream = self.streams.removeValue(forKey: id) {
      stream.close()
      self.events.append(.closed(stream))
    } else {
      self.connection?.allowAnotherStream(insteadOf: id)
    }
    return 0
  }

  /// libnghttp3 wants to tell the peer of each stream whose response is not read to its end. It refuses with QPACK_FATAL
  /// if it has too much to tell. Without a dynamic table, the peer need not be told (RFC 9204, section 2.2.2.2).
  func willReceiveNoMore(ofStream id: Int64) -> Int32 {
    guard let handle = self.handle else { return 0 }
    let result = nghttp3_conn_shutdown_stream_read(handle.pointer, id)
    guard [0, NGHTTP3_ERR_STREAM_NOT_FOUND, NGHTTP3_ERR_QPACK_FATAL].contains(result) else {
      return self.fail(result, onStream: id)
    }
    return 0
  }

  func peerDidReset(_ id: Int64, _ code: HTTP3ErrorCode) -> Int32 {
    let result = self.willReceiveNoMore(ofStream: id)
    guard result == 0 else { return result }
    if let stream = self.streams[id] { self.events.append(.reset(stream, code)) }
    return 0
  }

  /// Returns what makes libngtcp2 end the connection.
  private func fail(_ error: Int32, onStream id: Int64? = nil) -> Int32 {
    self.error = error
    self.brokenStreamID = id ?? self.brokenStreamID
    return NGTCP2_ERR_CALLBACK_FAILURE
  }
}
